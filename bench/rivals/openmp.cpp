// openmp.cpp - the measurements range_*.c for OpenMP; the same work, the same checks, the same line of output.
//
//     openmp NAME [WORKERS] [SCALE]
//
// A sum is a loop with a reduction. Halves and nodes are tasks: OpenMP's loops do not nest without further threads, and
// a taskloop measured slower for ranges of eight.
#include "../range_body.h"

#include <omp.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using Clock = std::chrono::steady_clock;
using std::uint64_t;

namespace {

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

double since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

struct Outcome {
    uint64_t n;
    double ns;
};

Outcome sum(uint64_t n) {
    uint64_t expected = range_sum(0, n);
    double ns = 0;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        uint64_t total = 0;
        auto begin = Clock::now();
#pragma omp parallel for reduction(+ : total)
        for (size_t i = 0; i < n; i++) total += range_hash(i);
        ns += since(begin);
        if (total != expected) fail("the sum is wrong");
    }
    return {RANGE_TURNS * n / 1000, ns};
}

void sort_halves(uint64_t *a, uint64_t *spare, size_t n) {
    if (n <= SORT_GRAIN) return range_sort_alone(a, n);
    size_t half = n / 2;
#pragma omp task
    sort_halves(a + half, spare + half, n - half);
    sort_halves(a, spare, half);
#pragma omp taskwait
    range_merge(a, spare, half, n);
}

Outcome sort(uint64_t n) {
    std::vector<uint64_t> a(n), spare(n);
    double ns = 0;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        for (uint64_t i = 0; i < n; i++) a[i] = range_hash(i + 1);
        auto begin = Clock::now();
#pragma omp parallel
#pragma omp single
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
    std::vector<uint64_t> counts(n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t *to = &counts[i];
#pragma omp task firstprivate(to)
        *to = count(range_child(id, i), depth + 1);
    }
#pragma omp taskwait
    uint64_t sum = 1;
    for (uint64_t one : counts) sum += one;
    return sum;
}

Outcome tree(uint64_t roots) {
    uint64_t expected = 0;
    for (uint64_t i = 0; i < roots; i++) expected += range_count_alone(i + 1, 0);
    double ns = 0;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        uint64_t nodes = 0;
        std::vector<uint64_t> counts(roots);
        auto begin = Clock::now();
#pragma omp parallel
#pragma omp single
        for (uint64_t i = 0; i < roots; i++) {
            uint64_t *to = &counts[i];
#pragma omp task firstprivate(to)
            *to = count(i + 1, 0);
        }
        for (uint64_t one : counts) nodes += one;
        ns += since(begin);
        if (nodes != expected) fail("the count is wrong");
    }
    return {RANGE_TURNS * expected / 1000 + 1, ns};
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) fail("usage: openmp NAME [WORKERS] [SCALE]");
    int workers = argc > 2 ? std::atoi(argv[2]) : 0;
    if (workers <= 0) workers = omp_get_num_procs();
    double scale = argc > 3 ? std::strtod(argv[3], nullptr) : 1;
    auto scaled = [scale](double n) { return n * scale < 1 ? 1 : uint64_t(n * scale); };
    omp_set_num_threads(workers);
    std::string name = argv[1];
    Outcome result = name == "range_sum"    ? sum(scaled(SUM_N))
                     : name == "range_sort" ? sort(scaled(SORT_N))
                     : name == "range_tree" ? tree(scaled(TREE_ROOTS))
                                            : (fail("there is no such benchmark"), Outcome{});
    std::printf("openmp %s %d %" PRIu64 " %.1f\n", argv[1], workers, result.n, result.ns / double(result.n));
}
