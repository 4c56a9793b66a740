// word_count_cxx.cpp - ccc.hpp: counts words with four tasks; strings go through channels, an exception crosses a join.
#include <ccc/ccc.hpp>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>

using Counts = std::map<std::string, int>;
using namespace std::chrono_literals;

static Counts count(ccc::channel<std::string> lines) {
    Counts counts;
    for (std::string &line : lines) { // until the channel is closed and empty
        std::istringstream words(line);
        for (std::string word; words >> word;) counts[word]++;
    }
    return counts;
}

static Counts count_all(const char *const *text) {
    ccc::channel<std::string> lines(8);
    ccc::channel<Counts> parts(4);
    ccc::nursery n; // waits for its children, however this function is left
    for (int i = 0; i < 4; i++) n.go([=]() mutable { parts.send(count(lines)); });
    for (; *text != nullptr; text++) lines.send(*text);
    lines.close();

    Counts sum;
    auto add = [&](std::optional<Counts> part) {
        for (auto &[word, number] : part.value()) sum[word] += number;
    };
    auto give_up = [] { throw std::runtime_error("too slow"); };
    for (int i = 0; i < 4; i++) ccc::select(ccc::on_recv(parts, add), ccc::on_after(60s, give_up));
    n.wait(); // rethrows what a child has thrown
    return sum;
}

int main() {
    static const char *const text[] = {"one fish", "two fish", "red fish", "blue fish", nullptr};
    for (auto &[word, number] : count_all(text)) std::printf("%s %d\n", word.c_str(), number);

    ccc::task<int> divides = ccc::go([]() -> int { throw std::domain_error("by zero"); });
    try {
        std::printf("%d\n", divides.join());
    } catch (const std::domain_error &e) {
        std::printf("thrown by the task: %s\n", e.what());
    }
}
