// boost.cpp - the measurements of ../*.c for Boost.Fiber; the same work, the same checks, the same line of output.
//
//     boost NAME [WORKERS] [SCALE]
//
// One worker runs the default round-robin scheduler; more run work_stealing, whose idle threads sleep: on as many CPUs
// as workers that measured faster than letting them spin, which is the default.
// Stacks are as the library allocates them by default, except that one worker reuses them from a pool: that pool is
// not made for fibers that end on another thread.
//
// A buffered_channel keeps one slot free, and its size is a power of two: 128 holds 127 values, 2 holds one. There is
// no select, and nothing like a nursery.
#include <boost/fiber/all.hpp>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bf = boost::fibers;
using Clock = std::chrono::steady_clock;
using std::uint64_t;

namespace {

template <typename... Args> [[noreturn]] void fail(const char *format, Args... args) {
    std::fprintf(stderr, format, args...);
    std::fputc('\n', stderr);
    std::_Exit(1);
}

struct Outcome {
    uint64_t n;
    double ns;
    std::string extras;
};

double since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// A value in kB from /proc/self/status, in bytes.
double status(const std::string &key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, key.size() + 1, key + ":") == 0)
            return 1024.0 * std::strtod(line.c_str() + key.size() + 1, nullptr);
    return 0;
}

// ---- workers and stacks ----

unsigned workers = 1;

template <typename Fn> bf::fiber start(Fn &&fn) {
    if (workers > 1) return bf::fiber(std::forward<Fn>(fn));
    static boost::context::pooled_fixedsize_stack stacks;
    return bf::fiber(std::allocator_arg, stacks, std::forward<Fn>(fn));
}

class Pool {
  public:
    explicit Pool(unsigned count) {
        if (count < 2) return;
        for (unsigned i = 1; i < count; i++) threads.emplace_back([this, count] { work(count); });
        bf::use_scheduling_algorithm<bf::algo::work_stealing>(count, true);
    }

    void end() {
        {
            std::lock_guard<std::mutex> lock(mutex);
            done = true;
        }
        ended.notify_all();
        for (auto &thread : threads) thread.join();
    }

  private:
    void work(unsigned count) {
        bf::use_scheduling_algorithm<bf::algo::work_stealing>(count, true);
        std::unique_lock<std::mutex> lock(mutex);
        ended.wait(lock, [this] { return done; });
    }

    std::vector<std::thread> threads;
    std::mutex mutex;
    bf::condition_variable_any ended;
    bool done = false;
};

// ---- fibers ----

Outcome yields(uint64_t fibers, uint64_t each) {
    std::vector<uint64_t> counts(fibers);
    std::vector<bf::fiber> all;
    all.reserve(fibers);
    auto begin = Clock::now();
    for (uint64_t i = 0; i < fibers; i++)
        all.push_back(start([&count = counts[i], each] {
            uint64_t done = 0;
            for (; done < each; done++) boost::this_fiber::yield();
            count = done;
        }));
    for (auto &fiber : all) fiber.join();
    double ns = since(begin);
    uint64_t sum = 0;
    for (uint64_t count : counts) sum += count;
    if (sum != fibers * each) fail("%" PRIu64 " yields were counted", sum);
    return {sum, ns, ""};
}

void check_sum(uint64_t n, uint64_t sum) {
    if (sum != n * (n - 1) / 2) fail("the sum of the results is %" PRIu64, sum);
}

Outcome spawn_join(uint64_t n) {
    uint64_t sum = 0, got = 0;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i++) {
        start([&got, i] { got = i; }).join();
        sum += got;
    }
    double ns = since(begin);
    check_sum(n, sum);
    return {n, ns, ""};
}

Outcome spawn_batch(uint64_t n) {
    std::vector<uint64_t> got(n, 1);
    std::vector<bf::fiber> all;
    all.reserve(n);
    uint64_t sum = 0;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i++) all.push_back(start([&to = got[i], i] { to = i; }));
    for (auto &fiber : all) fiber.join();
    for (uint64_t value : got) sum += value;
    double ns = since(begin);
    check_sum(n, sum);
    return {n, ns, ""};
}

Outcome spawn_turn(uint64_t n) {
    constexpr uint64_t group = 100;
    n = (n + group - 1) / group * group;
    uint64_t got[group], sum = 0;
    std::vector<bf::fiber> all;
    all.reserve(group);
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i += group) {
        for (uint64_t k = 0; k < group; k++) all.push_back(start([&to = got[k], value = i + k] { to = value; }));
        boost::this_fiber::yield();
        for (auto &fiber : all) fiber.join();
        all.clear();
        for (uint64_t value : got) sum += value;
    }
    double ns = since(begin);
    check_sum(n, sum);
    return {n, ns, ""};
}

constexpr uint64_t one_spawn = UINT64_C(1) << 32;

// The number in the lower half, the count of fibers in the upper.
uint64_t fib(uint64_t n) {
    if (n < 2) return n;
    uint64_t left = 0;
    bf::fiber child = start([&left, n] { left = fib(n - 1); });
    uint64_t right = fib(n - 2);
    child.join();
    return left + right + one_spawn;
}

uint64_t fibonacci(uint64_t n) {
    uint64_t a = 0, b = 1;
    for (; n > 0; n--) b = std::exchange(a, b) + b;
    return a;
}

Outcome run_fib(double scale) {
    uint64_t n = 27;
    for (double s = scale; s > 1.27 && n < 40; s /= 1.618) n++;
    for (double s = scale; s < 0.79 && n > 2; s *= 1.618) n--;
    auto begin = Clock::now();
    uint64_t both = fib(n);
    double ns = since(begin);
    uint64_t number = both % one_spawn, spawns = both / one_spawn;
    if (number != fibonacci(n) || spawns != fibonacci(n + 1) - 1)
        fail("fib(%" PRIu64 ") gave %" PRIu64 " with %" PRIu64 " fibers", n, number, spawns);
    return {spawns, ns, ""};
}

constexpr uint64_t children = 10;

uint64_t node(uint64_t first, uint64_t leaves) {
    if (leaves == 1) return first;
    uint64_t share = leaves / children, sums[children], total = 0;
    bf::fiber all[children];
    for (uint64_t i = 0; i < children; i++)
        all[i] = start([&sum = sums[i], from = first + i * share, share] { sum = node(from, share); });
    for (uint64_t i = 0; i < children; i++) {
        all[i].join();
        total += sums[i];
    }
    return total;
}

Outcome skynet(double scale) {
    uint64_t leaves = 1000000, nodes = 0, sum = 0;
    for (double s = scale; s > 3.2 && leaves < 100000000; s /= 10) leaves *= children;
    for (double s = scale; s < 0.32 && leaves > 1; s *= 10) leaves /= children;
    auto begin = Clock::now();
    start([&sum, leaves] { sum = node(0, leaves); }).join();
    double ns = since(begin);
    if (sum != leaves * (leaves - 1) / 2) fail("the sum is %" PRIu64, sum);
    for (uint64_t level = leaves; level > 0; level /= children) nodes += level;
    return {nodes, ns, ""};
}

Outcome timers(uint64_t n) {
    constexpr uint64_t second = 1000000000;
    std::atomic<uint64_t> early{0}, late_sum{0}, late_max{0};
    std::vector<bf::fiber> all;
    all.reserve(n);
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t wanted = n > 1 ? i * 7919 % n * second / (n - 1) : second;
        all.push_back(start([&, wanted] {
            auto until = Clock::now() + std::chrono::nanoseconds(wanted);
            boost::this_fiber::sleep_until(until);
            auto now = Clock::now();
            if (now < until) {
                early++;
                return;
            }
            uint64_t late = uint64_t(std::chrono::nanoseconds(now - until).count()), max = late_max;
            late_sum += late;
            while (late > max && !late_max.compare_exchange_weak(max, late)) {
            }
        }));
    }
    for (auto &fiber : all) fiber.join();
    double ns = since(begin);
    if (early != 0) fail("%" PRIu64 " sleeps ended early", early.load());
    if (ns < double(second)) fail("all sleeps were over after %.0f ns", ns);
    char extras[96];
    std::snprintf(extras, sizeof extras, "late_mean_us=%.0f late_max_us=%.0f", double(late_sum) / double(n) / 1e3,
                  double(late_max) / 1e3);
    return {n, ns - double(second), extras};
}

Outcome parked(uint64_t n) {
    bf::mutex mutex;
    bf::condition_variable opened;
    bool open = false;
    uint64_t arrived = 0, passed = 0;
    std::vector<bf::fiber> all;
    all.reserve(n);
    double rss_before = status("VmRSS"), pte_before = status("VmPTE"), rss = 0, pte = 0;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i++)
        all.push_back(start([&] {
            std::unique_lock<bf::mutex> lock(mutex);
            if (++arrived == n) {
                rss = status("VmRSS");
                pte = status("VmPTE");
                open = true;
                opened.notify_all();
            }
            opened.wait(lock, [&] { return open; });
            passed++;
        }));
    for (auto &fiber : all) fiber.join();
    double ns = since(begin);
    if (passed != n) fail("%" PRIu64 " fibers passed the gate", passed);
    char extras[96];
    std::snprintf(extras, sizeof extras, "rss_bytes=%.0f pte_bytes=%.0f", (rss - rss_before) / double(n),
                  (pte - pte_before) / double(n));
    return {n, ns, extras};
}

Outcome mutex(uint64_t n) {
    constexpr uint64_t users = 16;
    uint64_t each = (n + users - 1) / users, balance = 0;
    bf::mutex mutex;
    std::vector<bf::fiber> all;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < users; i++)
        all.push_back(start([&] {
            for (uint64_t k = 0; k < each; k++) {
                std::lock_guard<bf::mutex> lock(mutex);
                balance++;
            }
        }));
    for (auto &fiber : all) fiber.join();
    double ns = since(begin);
    if (balance != users * each) fail("%" PRIu64 " increments were counted", balance);
    return {balance, ns, ""};
}

// ---- channels ----

constexpr auto success = bf::channel_op_status::success;

Outcome pingpong(uint64_t n) {
    bf::unbuffered_channel<uint64_t> there, back;
    bf::fiber other = start([&] {
        for (uint64_t token; there.pop(token) == success;) back.push(token + 1);
    });
    uint64_t token = 0;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i++) {
        there.push(token);
        back.pop(token);
    }
    double ns = since(begin);
    there.close();
    other.join();
    if (token != n) fail("the token says %" PRIu64, token);
    return {n, ns, ""};
}

Outcome flow(std::size_t capacity, uint64_t n, uint64_t each) {
    struct Received {
        uint64_t received = 0, sum = 0, disorder = 0;
    };
    uint64_t share = n / each > 0 ? n / each : 1, received = 0, sum = 0;
    n = share * each;
    bf::buffered_channel<uint64_t> channel(capacity);
    std::vector<Received> totals(each);
    std::vector<bf::fiber> producers, consumers;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < each; i++)
        consumers.push_back(start([&channel, &to = totals[i]] {
            Received total;
            for (uint64_t value, last = 0; channel.pop(value) == success; last = value) {
                total.received++;
                total.sum += value;
                total.disorder += value < last;
            }
            to = total;
        }));
    for (uint64_t i = 0; i < each; i++)
        producers.push_back(start([&channel, i, share] {
            for (uint64_t value = i * share; value < (i + 1) * share; value++) channel.push(value);
        }));
    for (auto &fiber : producers) fiber.join();
    channel.close();
    for (auto &fiber : consumers) fiber.join();
    double ns = since(begin);
    for (const Received &r : totals) {
        received += r.received;
        sum += r.sum;
        if (each == 1 && r.disorder != 0) fail("values came out of order");
    }
    if (received != n || sum != n * (n - 1) / 2) fail("%" PRIu64 " values with sum %" PRIu64, received, sum);
    return {n, ns, ""};
}

// The token counts the hops that are left; the fiber that receives 0 closes its output, and so do all others after it.
Outcome ring(uint64_t n) {
    constexpr uint64_t fibers = 503;
    std::vector<bf::unbuffered_channel<uint64_t>> channels(fibers);
    std::vector<uint64_t> passed(fibers);
    std::vector<bf::fiber> all;
    uint64_t last = fibers, sum = 0;
    Clock::time_point end;
    for (uint64_t i = 0; i < fibers; i++)
        all.push_back(start([&, i] {
            auto &out = channels[(i + 1) % fibers];
            for (uint64_t left; channels[i].pop(left) == success;) {
                passed[i]++;
                if (left == 0) {
                    end = Clock::now();
                    last = i;
                    break;
                }
                out.push(left - 1);
            }
            out.close();
        }));
    auto begin = Clock::now();
    channels[0].push(n);
    for (auto &fiber : all) fiber.join();
    for (uint64_t count : passed) sum += count;
    if (last != n % fibers || sum != n + 1) fail("%" PRIu64 " hops, the last to %" PRIu64, sum, last);
    return {n, std::chrono::duration<double, std::nano>(end - begin).count(), ""};
}

int nth_prime(uint64_t n) {
    int p = 1;
    while (n > 0) {
        p++;
        int d = 2;
        while (d * d <= p && p % d != 0) d++;
        if (d * d > p) n--;
    }
    return p;
}

Outcome sieve(uint64_t n) {
    using Channel = bf::unbuffered_channel<int>;
    std::vector<std::unique_ptr<Channel>> channels;
    std::vector<bf::fiber> all;
    int prime = 0;
    auto begin = Clock::now();
    channels.push_back(std::make_unique<Channel>());
    all.push_back(start([out = channels[0].get()] {
        for (int i = 2; out->push(i) == success; i++) {
        }
    }));
    for (uint64_t k = 0; k < n; k++) {
        Channel *in = channels.back().get();
        if (in->pop(prime) != success) fail("a channel is closed");
        channels.push_back(std::make_unique<Channel>());
        all.push_back(start([in, out = channels.back().get(), prime] {
            for (int i; in->pop(i) == success;)
                if (i % prime != 0 && out->push(i) != success) break;
            in->close();
        }));
    }
    double ns = since(begin);
    channels.back()->close();
    for (auto &fiber : all) fiber.join();
    if (prime != nth_prime(n) || (n == 1500 && prime != 12553)) fail("the last prime is %d", prime);
    return {n, ns, ""};
}

Outcome run(const std::string &name, double scale) {
    auto scaled = [scale](double n) { return n * scale < 1 ? 1 : uint64_t(n * scale); };
    if (name == "yield") return yields(2, scaled(2500000));
    if (name == "yield1k") return yields(1000, scaled(5000));
    if (name == "spawn_join") return spawn_join(scaled(1000000));
    if (name == "spawn_batch") return spawn_batch(scaled(1000000));
    if (name == "spawn_turn") return spawn_turn(scaled(1000000));
    if (name == "fib") return run_fib(scale);
    if (name == "skynet") return skynet(scale);
    if (name == "timers") return timers(scaled(100000));
    if (name == "parked") return parked(scaled(100000));
    if (name == "pingpong") return pingpong(scaled(1000000));
    if (name == "spsc") return flow(128, scaled(5000000), 1);
    if (name == "spsc_cap1") return flow(2, scaled(2000000), 1);
    if (name == "mpmc") return flow(128, scaled(4000000), 4);
    if (name == "ring") return ring(scaled(2000000));
    if (name == "sieve") return sieve(scaled(1500));
    if (name == "mutex") return mutex(scaled(2000000));
    fail("there is no benchmark '%s'", name.c_str());
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) fail("usage: %s NAME [WORKERS] [SCALE]", argv[0]);
    workers = argc > 2 ? unsigned(std::strtoul(argv[2], nullptr, 10)) : 0;
    if (workers == 0) workers = std::thread::hardware_concurrency();
    double scale = argc > 3 ? std::strtod(argv[3], nullptr) : 1;
    if (!(scale > 0)) fail("'%s' is not a scale", argv[3]);
    Pool pool(workers);
    Outcome result{};
    start([&] { result = run(argv[1], scale); }).join();
    std::printf("boost %s %u %" PRIu64 " %.1f%s%s\n", argv[1], workers, result.n, result.ns / double(result.n),
                result.extras.empty() ? "" : " ", result.extras.c_str());
    pool.end();
}
