// tbb.cpp - the fork-join measurements of ../*.c for oneTBB; the same work, the same checks, the same line of output.
//
//     tbb NAME [WORKERS] [SCALE]
//
// A task of oneTBB runs to its end on the stack of a worker: it has no stack of its own, and cannot wait for a channel
// or a moment without holding its worker up. So only the rows that fork and join are here. A task_group is joined as a
// whole.
#include "../range_body.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_invoke.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
    double tiny = 0;
};

double since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

void check_sum(uint64_t n, uint64_t sum) {
    if (sum != n * (n - 1) / 2) fail("the sum of the results is %" PRIu64, sum);
}

Outcome spawn_join(uint64_t n) {
    uint64_t sum = 0, got = 0;
    auto begin = Clock::now();
    for (uint64_t i = 0; i < n; i++) {
        tbb::task_group one;
        one.run([&got, i] { got = i; });
        one.wait();
        sum += got;
    }
    double ns = since(begin);
    check_sum(n, sum);
    return {n, ns};
}

Outcome spawn_batch(uint64_t n) {
    std::vector<uint64_t> got(n, 1);
    uint64_t sum = 0;
    auto begin = Clock::now();
    tbb::task_group all;
    for (uint64_t i = 0; i < n; i++) all.run([&to = got[i], i] { to = i; });
    all.wait();
    for (uint64_t value : got) sum += value;
    double ns = since(begin);
    check_sum(n, sum);
    return {n, ns};
}

Outcome nursery(uint64_t n, uint64_t tiny) {
    Outcome result = spawn_batch(n), small = spawn_join(tiny);
    result.tiny = small.ns / double(small.n);
    return result;
}

constexpr uint64_t one_spawn = UINT64_C(1) << 32;

// The number in the lower half, the count of tasks in the upper.
uint64_t fib(uint64_t n) {
    if (n < 2) return n;
    uint64_t left = 0;
    tbb::task_group child;
    child.run([&left, n] { left = fib(n - 1); });
    uint64_t right = fib(n - 2);
    child.wait();
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
        fail("fib(%" PRIu64 ") gave %" PRIu64 " with %" PRIu64 " tasks", n, number, spawns);
    return {spawns, ns};
}

constexpr uint64_t children = 10;

uint64_t node(uint64_t first, uint64_t leaves) {
    if (leaves == 1) return first;
    uint64_t share = leaves / children, sums[children], total = 0;
    tbb::task_group all;
    for (uint64_t i = 0; i < children; i++)
        all.run([&sum = sums[i], from = first + i * share, share] { sum = node(from, share); });
    all.wait();
    for (uint64_t sum : sums) total += sum;
    return total;
}

Outcome skynet(double scale) {
    uint64_t leaves = 1000000, nodes = 0;
    for (double s = scale; s > 3.2 && leaves < 100000000; s /= 10) leaves *= children;
    for (double s = scale; s < 0.32 && leaves > 1; s *= 10) leaves /= children;
    auto begin = Clock::now();
    uint64_t sum = node(0, leaves);
    double ns = since(begin);
    if (sum != leaves * (leaves - 1) / 2) fail("the sum is %" PRIu64, sum);
    for (uint64_t level = leaves; level > 0; level /= children) nodes += level;
    return {nodes, ns};
}

// ---- ranges: the automatic partitioner, which is the default ----

Outcome range_sum_row(uint64_t n) {
    uint64_t expected = range_sum(0, n);
    double ns = 0;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        auto begin = Clock::now();
        uint64_t sum = tbb::parallel_reduce(
            tbb::blocked_range<size_t>(0, n), uint64_t(0),
            [](const tbb::blocked_range<size_t> &r, uint64_t so_far) { return so_far + range_sum(r.begin(), r.end()); },
            [](uint64_t a, uint64_t b) { return a + b; });
        ns += since(begin);
        if (sum != expected) fail("the sum is %" PRIu64, sum);
    }
    return {RANGE_TURNS * n / 1000, ns};
}

void sort_halves(uint64_t *a, uint64_t *spare, size_t n) {
    if (n <= SORT_GRAIN) return range_sort_alone(a, n);
    size_t half = n / 2;
    tbb::parallel_invoke([=] { sort_halves(a, spare, half); }, [=] { sort_halves(a + half, spare + half, n - half); });
    range_merge(a, spare, half, n);
}

Outcome range_sort_row(uint64_t n) {
    std::vector<uint64_t> a(n), spare(n);
    double ns = 0;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        for (uint64_t i = 0; i < n; i++) a[i] = range_hash(i + 1);
        auto begin = Clock::now();
        sort_halves(a.data(), spare.data(), n);
        ns += since(begin);
        for (uint64_t i = 1; i < n; i++)
            if (a[i - 1] > a[i]) fail("the numbers are out of order");
    }
    return {RANGE_TURNS * n, ns};
}

uint64_t count(uint64_t id, unsigned depth) {
    unsigned n = range_children(id, depth);
    if (n == 0 || depth > TREE_DEPTH) return range_count_alone(id, depth);
    return 1 + tbb::parallel_reduce(
                   tbb::blocked_range<size_t>(0, n), uint64_t(0),
                   [=](const tbb::blocked_range<size_t> &r, uint64_t so_far) {
                       for (size_t i = r.begin(); i < r.end(); i++) so_far += count(range_child(id, i), depth + 1);
                       return so_far;
                   },
                   [](uint64_t a, uint64_t b) { return a + b; });
}

Outcome range_tree_row(uint64_t roots) {
    uint64_t expected = 0;
    for (uint64_t i = 0; i < roots; i++) expected += range_count_alone(i + 1, 0);
    double ns = 0;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        auto begin = Clock::now();
        uint64_t nodes = tbb::parallel_reduce(
            tbb::blocked_range<size_t>(0, roots), uint64_t(0),
            [](const tbb::blocked_range<size_t> &r, uint64_t so_far) {
                for (size_t i = r.begin(); i < r.end(); i++) so_far += count(i + 1, 0);
                return so_far;
            },
            [](uint64_t a, uint64_t b) { return a + b; });
        ns += since(begin);
        if (nodes != expected) fail("%" PRIu64 " nodes were counted", nodes);
    }
    return {RANGE_TURNS * expected / 1000 + 1, ns};
}

Outcome run(const std::string &name, double scale) {
    auto scaled = [scale](double n) { return n * scale < 1 ? 1 : uint64_t(n * scale); };
    if (name == "spawn_join") return spawn_join(scaled(1000000));
    if (name == "spawn_batch") return spawn_batch(scaled(1000000));
    if (name == "nursery") return nursery(scaled(1000000), scaled(200000));
    if (name == "fib") return run_fib(scale);
    if (name == "skynet") return skynet(scale);
    if (name == "range_sum") return range_sum_row(scaled(SUM_N));
    if (name == "range_sort") return range_sort_row(scaled(SORT_N));
    if (name == "range_tree") return range_tree_row(scaled(TREE_ROOTS));
    fail("there is no benchmark '%s'", name.c_str());
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) fail("usage: %s NAME [WORKERS] [SCALE]", argv[0]);
    unsigned workers = argc > 2 ? unsigned(std::strtoul(argv[2], nullptr, 10)) : 0;
    if (workers == 0) workers = std::thread::hardware_concurrency();
    double scale = argc > 3 ? std::strtod(argv[3], nullptr) : 1;
    if (!(scale > 0)) fail("'%s' is not a scale", argv[3]);
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
    Outcome result{};
    tbb::task_arena(int(workers)).execute([&] { result = run(argv[1], scale); });
    std::printf("tbb %s %u %" PRIu64 " %.1f", argv[1], workers, result.n, result.ns / double(result.n));
    if (result.tiny > 0) std::printf(" tiny_ns=%.1f", result.tiny);
    std::putchar('\n');
}
