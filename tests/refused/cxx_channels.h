/* cxx_channels.h - uses of ccc.hpp that a compiler must reject; in C there are none. See typed_channels.h. */
#ifdef __cplusplus
#include <ccc/ccc.hpp>

struct unrelated {
    int x;
};
void tries(ccc::channel<std::string> &strings, ccc::nursery &n, ccc::task<int> &t);
void tries(ccc::channel<std::string> &strings, ccc::nursery &n, ccc::task<int> &t) {
    std::string text;
    unrelated other{0};
    strings.send("text");
    ccc::select(ccc::on_recv(strings, [&](std::optional<std::string> s) { text = s.value(); }));
    n.go([] {});
    ccc::task<int> moved = std::move(t);
#if REFUSED == 1
    strings.send(other);
#elif REFUSED == 2
    strings.recv_try(other); /* another type */
#elif REFUSED == 3
    ccc::select(ccc::on_send(strings, other, [](bool) {}));
#elif REFUSED == 4
    ccc::select(ccc::on_recv(strings, [&](std::optional<unrelated>) {}));
#elif REFUSED == 5
    ccc::task<int> copy = moved; /* a handle is joined once */
#elif REFUSED == 6
    ccc::nursery copy = n;
#elif REFUSED == 7
    n.go([](int) {}); /* a task takes no argument */
#elif REFUSED == 8
    std::string result = moved.join();
#elif REFUSED == 9
    ccc::select(strings); /* not an arm */
#elif REFUSED == 10
    strings.send_until(text, 100); /* a deadline is ccc::after(100ms) */
#elif REFUSED == 11
    ccc::sleep_for(100); /* without a unit */
#endif
    (void)other;
}
#elif REFUSED > 0
#error "C has no templates"
#endif
