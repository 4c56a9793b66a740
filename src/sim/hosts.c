/* hosts.c - simulated hosts: which fibers are on them, crashes, partitions, and the network that the seed defines.
 *
 * HOST-1  A fiber is on the host of the fiber that started it. All fibers that are new in the queues after a turn were
 *         started by the one that had that turn (next.c), so a spawn need not note anything. The first fiber of a host
 *         is placed there by its start.
 * HOST-2  A crash ends an incarnation of a host. Sockets and fibers belong to one: those of an earlier one get
 *         ECANCELED from every call.
 */
#include "sim/system.h"

#include "base/mem.h"
#include "fiber/pool.h"
#include "os/clock.h"
#include "sched/upcalls.h"
#include "sim/sim.h"

#include <errno.h>
#include <string.h>

enum { WINDOW_MAX = 1 << 20, LATENCY_MAX_US = 60 * 1000 * 1000, PPM = 1000000, FIRST_PORT = 32768 };

/* ---- the seed ---- */

static uint32_t draw_rate(bool grave) {
    static const uint32_t rates[] = {0, 0, 0, 1000, 10000, 50000};
    return rates[cc__sys_draw(array_len(rates))] / (grave ? 10 : 1);
}

/* No single network finds every bug soon: some seeds have one without faults, others have some faults, few have all. */
static void draw_net(CCSimNet *net) {
    static const uint32_t latencies[] = {10, 100, 1000, 20000}, windows[] = {7, 512, 4096, 65536, 65536, 262144};
    net->latency_min_us = latencies[cc__sys_draw(array_len(latencies))];
    net->latency_max_us = net->latency_min_us * (1 + cc__sys_draw(10));
    net->window = windows[cc__sys_draw(array_len(windows))];
    if (cc__sys_draw(4) == 0) return;
    net->slow_ppm = draw_rate(false);
    net->short_ppm = 10 * draw_rate(false);
    net->reset_ppm = draw_rate(true);
    net->half_open_ppm = draw_rate(true);
    net->refuse_ppm = draw_rate(false);
    net->black_hole_ppm = draw_rate(false);
    net->no_descriptor_ppm = draw_rate(false);
    net->loss_ppm = draw_rate(false);
    net->duplicate_ppm = draw_rate(false);
    net->name_ppm = draw_rate(false);
    net->partition_ppm = draw_rate(true);
}

void cc__sys_set(uint64_t seed) {
    cc__sys_reset();
    if (seed == 0) {
        cc__os_simulate(NULL);
        return;
    }
    cc__sys.random = (seed ^ UINT64_C(0x6e6574776f726b)) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 4; i++) (void)cc__sys_draw(2); /* by now small seeds differ */
    draw_net(&cc__sys.net);
    cc__sys.hosts[0] = (struct host){.name = "localhost", .is_up = true, .next_port = FIRST_PORT};
    cc__sys.hosts_count = 1;
    cc__os_simulate(&cc__sys_table);
}

/* ---- where fibers are ---- */

/* Written when the record was created: hidden from the race detector, which knows no order between fibers. */
static CC_NOINLINE CC_NO_TSAN uint32_t slot_of(const struct fiber *f) {
    return f->slot;
}

static struct sys_placement placement_of(const struct fiber *f) {
    static const struct sys_placement nowhere;
    if (f == NULL || slot_of(f) >= cc__sys.placements_count) return nowhere;
    struct sys_placement placement = cc__sys.placements[slot_of(f)];
    return placement.generation == cc__get(&f->generation) + 1 ? placement : nowhere;
}

struct sys_placement cc__sys_placement(void) {
    return placement_of(cc__sched_current(cc__worker()));
}

bool cc__sys_placement_gone(struct sys_placement placement) { /* HOST-2 */
    const struct host *h = &cc__sys.hosts[placement.host];
    return placement.host != 0 && (!h->is_up || h->incarnation != placement.incarnation);
}

static bool placements_grow(uint32_t slot) {
    uint32_t count = slot < 64 ? 64 : slot * 2;
    struct sys_placement *more = cc__mem_alloc(count * sizeof *more);
    if (more == NULL) return false;
    if (cc__sys.placements_count > 0) memcpy(more, cc__sys.placements, cc__sys.placements_count * sizeof *more);
    cc__mem_free(cc__sys.placements);
    cc__sys.placements = more;
    cc__sys.placements_count = count;
    return true;
}

/* Without memory the fiber is on host 0. */
static void set_placement(const struct fiber *f, uint32_t host, uint32_t incarnation) {
    uint32_t slot = slot_of(f);
    if (slot >= cc__sys.placements_count && (host == 0 || !placements_grow(slot))) return;
    cc__sys.placements[slot] = (struct sys_placement){cc__get(&f->generation) + 1, host, incarnation};
}

uint32_t cc__sim_host_self(void) {
    cc__lock_take(&cc__sys.lock);
    uint32_t host = cc__sys_placement().host;
    cc__lock_release(&cc__sys.lock);
    return host;
}

void cc__sim_turn(const struct fiber *f) {
    cc__lock_take(&cc__sys.lock);
    cc__sys.turn = placement_of(f);
    cc__lock_release(&cc__sys.lock);
}

bool cc__sim_spawned(const struct fiber *f) { /* HOST-1 */
    cc__lock_take(&cc__sys.lock);
    if (placement_of(f).generation == 0) set_placement(f, cc__sys.turn.host, cc__sys.turn.incarnation);
    bool gone = cc__sys_placement_gone(placement_of(f));
    cc__lock_release(&cc__sys.lock);
    return !gone;
}

void cc__sim_place(const struct fiber *f, struct sim_place at) {
    cc__lock_take(&cc__sys.lock);
    set_placement(f, at.host, at.incarnation);
    cc__lock_release(&cc__sys.lock);
}

int cc__sim_move(struct sim_place to) {
    cc__lock_take(&cc__sys.lock);
    set_placement(cc__sched_current(cc__worker()), to.host, to.incarnation);
    cc__sys.turn = cc__sys_placement();
    bool gone = cc__sys.turn.host != to.host || cc__sys_placement_gone(cc__sys.turn);
    cc__lock_release(&cc__sys.lock);
    return gone ? ECANCELED : 0;
}

uint32_t cc__sim_on_host(uint32_t host, uint32_t *slots, uint32_t max) {
    uint32_t n = 0;
    cc__lock_take(&cc__sys.lock);
    for (uint32_t slot = 0; slot < cc__sys.placements_count && slot < cc__pool_size(); slot++) {
        struct fiber *f = cc__pool_at(slot);
        enum fiber_state state = cc__word_state(cc__get(&f->word));
        if (state == FIBER_IDLE || state == FIBER_DONE) continue;
        struct sys_placement placement = placement_of(f);
        if (placement.generation == 0 || placement.host != host) continue;
        if (n < max) slots[n] = slot;
        n++;
    }
    cc__lock_release(&cc__sys.lock);
    return n;
}

/* ---- hosts ---- */

int cc__sim_host(const char *name, uint32_t *host) {
    cc__lock_take(&cc__sys.lock);
    uint32_t i = 0;
    while (i < cc__sys.hosts_count && strcmp(cc__sys.hosts[i].name, name) != 0) i++;
    int error = i == HOSTS_MAX ? ENOSPC : 0;
    if (error == 0 && i == cc__sys.hosts_count) {
        cc__sys.hosts[i] = (struct host){.next_port = FIRST_PORT};
        strcpy(cc__sys.hosts[i].name, name);
        cc__sys.hosts_count++;
    }
    if (error == 0) *host = i;
    cc__lock_release(&cc__sys.lock);
    return error;
}

int cc__sim_host_start(uint32_t host, struct sim_place *place) {
    cc__lock_take(&cc__sys.lock);
    int error = host >= cc__sys.hosts_count ? EINVAL : cc__sys.hosts[host].is_up ? EALREADY : 0;
    if (error == 0) {
        cc__sys.hosts[host].is_up = true;
        cc__sys.hosts[host].incarnation++;
        cc__sys.hosts[host].next_port = (uint16_t)(FIRST_PORT + cc__sys_draw(20000));
        *place = (struct sim_place){host, cc__sys.hosts[host].incarnation};
        cc__stream_expect_silence(host, true); /* it answers again, and knows no connection */
    }
    cc__lock_release(&cc__sys.lock);
    return error;
}

static void crash_sockets(uint32_t host) {
    for (uint32_t i = 0; i < cc__sys.socks_count; i++) {
        struct sock *s = cc__sys.socks[i];
        if (s == NULL || s->host != host || s->crashed) continue;
        if (!s->is_open) {
            cc__sys_free(s);
            continue;
        }
        s->crashed = true;
        if (s->file != NULL) cc__disk_close(s->file);
        s->file = NULL;
        s->waiting_count = 0;
        cc__message_drop_all(s);
        cc__sys_report(s, POLLER_READ | POLLER_WRITE | POLLER_HANGUP);
    }
}

int cc__sim_host_crash(uint32_t host) {
    cc__lock_take(&cc__sys.lock);
    int error = host == 0 || host >= cc__sys.hosts_count ? EINVAL : !cc__sys.hosts[host].is_up ? EALREADY : 0;
    if (error == 0) {
        cc__sys.hosts[host].is_up = false;
        cc__sys.stats.crashes++;
        crash_sockets(host);
        if (cc__sys.hosts[host].files != NULL) cc__disk_crash(cc__sys.hosts[host].files);
        cc__stream_expect_silence(host, false);
    }
    cc__lock_release(&cc__sys.lock);
    return error;
}

bool cc__sim_host_is_up(uint32_t host) {
    cc__lock_take(&cc__sys.lock);
    bool up = host < cc__sys.hosts_count && cc__sys.hosts[host].is_up;
    cc__lock_release(&cc__sys.lock);
    return up;
}

bool cc__sim_host_exists(uint32_t host) {
    cc__lock_take(&cc__sys.lock);
    bool exists = host < cc__sys.hosts_count;
    cc__lock_release(&cc__sys.lock);
    return exists;
}

/* ---- the network ---- */

int cc__sim_cut(uint32_t a, uint32_t b, uint64_t until) {
    cc__lock_take(&cc__sys.lock);
    int error = a == b || a >= cc__sys.hosts_count || b >= cc__sys.hosts_count ? EINVAL : 0;
    if (error == 0) {
        cc__sys.cut_until[a][b] = cc__sys.cut_until[b][a] = until;
        if (until > cc__clock_now()) {
            cc__sys.stats.partitions++;
            cc__stream_expect_silence(a, false);
            cc__stream_expect_silence(b, false);
        }
        cc__sys_release_held(); /* those of other partitions are held again at once */
    }
    cc__lock_release(&cc__sys.lock);
    return error;
}

void cc__sim_net_get(CCSimNet *net) {
    cc__lock_take(&cc__sys.lock);
    *net = cc__sys.net;
    cc__lock_release(&cc__sys.lock);
}

static bool is_bad(const CCSimNet *n) {
    const uint32_t rates[] = {n->slow_ppm,          n->short_ppm, n->reset_ppm,     n->half_open_ppm,
                              n->refuse_ppm,        n->loss_ppm,  n->duplicate_ppm, n->black_hole_ppm,
                              n->no_descriptor_ppm, n->name_ppm,  n->partition_ppm};
    bool bad = n->latency_max_us < n->latency_min_us || n->latency_max_us > LATENCY_MAX_US || n->window == 0 ||
               n->window > WINDOW_MAX || cc__reserved_used(n);
    for (size_t i = 0; i < array_len(rates); i++) bad = bad || rates[i] > PPM;
    return bad;
}

int cc__sim_net_set(const CCSimNet *net) {
    if (is_bad(net)) return EINVAL;
    cc__lock_take(&cc__sys.lock);
    cc__sys.net = *net;
    cc__lock_release(&cc__sys.lock);
    return 0;
}

void cc__sim_stats(CCSimStats *stats) {
    cc__lock_take(&cc__sys.lock);
    *stats = cc__sys.stats;
    cc__lock_release(&cc__sys.lock);
}

uint64_t cc__sim_sync_delay(void) {
    cc__lock_take(&cc__sys.lock);
    uint64_t ns = 20000 + (uint64_t)cc__sys_draw(1000) * cc__sys_draw(10000);
    cc__lock_release(&cc__sys.lock);
    return ns;
}
