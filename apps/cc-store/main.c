/* main.c - cc-store: a node, or a client.
 *
 *   cc-store serve DIRECTORY ID WHERE...  node number ID of those at WHERE..., with its files in DIRECTORY
 *   cc-store get KEY WHERE...             prints the value; status 1: there is none
 *   cc-store put KEY VALUE WHERE...
 *   cc-store count N WHERE...             counts to N, each number under one key, and reads it again each time
 *
 * WHERE: as for cc_dial, tcp://10.0.0.1:7000 or unix:/run/store/0.
 */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { PATIENCE_MS = 120000 };

struct command {
    int argc;
    char **argv;
};

static int usage(void) {
    fprintf(stderr, "usage: cc-store serve DIRECTORY ID WHERE... | get KEY WHERE... | put KEY VALUE WHERE... | "
                    "count N WHERE...\n");
    return 2;
}

static int serve(int argc, char **argv) {
    struct store_config config = {.directory = argv[0], .id = (unsigned)strtoul(argv[1], NULL, 10)};
    config.count = (unsigned)argc - 2;
    if (argc < 3 || config.count > NODES_MAX || config.id >= config.count) return usage();
    for (unsigned i = 0; i < config.count; i++) config.where[i] = argv[2 + i];
    config.listen = config.where[config.id];
    int error = store_run(&config);
    fprintf(stderr, "cc-store: node %u ends: %s\n", config.id, strerror(error));
    return 1;
}

static int client(struct store_client *c, int argc, char **argv) {
    uint64_t id = 0;
    if (argc < 1 || argc > NODES_MAX) return usage();
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) return 1;
    store_client_init(c, id | 1, (unsigned)argc, (const char *const *)argv);
    return 0;
}

static int failed(int error) {
    if (error == ENOENT) return 1;
    if (error != 0) fprintf(stderr, "cc-store: %s\n", strerror(error));
    return error != 0 ? 3 : 0;
}

static int get(int argc, char **argv) {
    struct store_client c;
    char value[VALUE_MAX];
    size_t size = sizeof value;
    int status = client(&c, argc - 1, argv + 1);
    if (status != 0) return status;
    int error = store_call(&c, OP_GET, argv[0], value, &size, cc_after_ms(PATIENCE_MS));
    if (error == 0) printf("%.*s\n", (int)size, value);
    store_client_close(&c);
    return failed(error);
}

static int put(int argc, char **argv) {
    struct store_client c;
    size_t size = strlen(argv[1]);
    int status = client(&c, argc - 2, argv + 2);
    if (status != 0) return status;
    int error = store_call(&c, OP_PUT, argv[0], argv[1], &size, cc_after_ms(PATIENCE_MS));
    store_client_close(&c);
    return failed(error);
}

/* There is one counter: what was acknowledged must be what is read. */
static int count(int argc, char **argv) {
    struct store_client c;
    unsigned long to = strtoul(argv[0], NULL, 10);
    int status = client(&c, argc - 1, argv + 1), error = 0;
    if (status != 0) return status;
    for (unsigned long i = 1; i <= to && error == 0; i++) {
        char text[32], seen[32] = "";
        size_t size = (size_t)snprintf(text, sizeof text, "%lu", i), room = sizeof seen - 1;
        error = store_call(&c, OP_PUT, "count", text, &size, cc_after_ms(PATIENCE_MS));
        if (error == 0) error = store_call(&c, OP_GET, "count", seen, &room, cc_after_ms(PATIENCE_MS));
        if (error == 0 && strcmp(seen, text) != 0) {
            fprintf(stderr, "cc-store: %s was acknowledged, and %s is read\n", text, seen);
            status = 4;
            break;
        }
    }
    store_client_close(&c);
    if (error == 0 && status == 0) printf("%lu acknowledged\n", to);
    return error != 0 ? failed(error) : status;
}

static void *run(void *arg) {
    static const struct {
        const char *name;
        int (*fn)(int argc, char **argv);
        int least;
    } commands[] = {{"serve", serve, 3}, {"get", get, 2}, {"put", put, 3}, {"count", count, 2}};
    struct command *c = arg;
    for (size_t i = 0; c->argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(c->argv[1], commands[i].name) == 0 && c->argc - 2 >= commands[i].least)
            return (void *)(intptr_t)commands[i].fn(c->argc - 2, c->argv + 2);
    return (void *)(intptr_t)usage();
}

int main(int argc, char **argv) {
    struct command c = {argc, argv};
    const char *bug = getenv("CC_STORE_BUG"); /* by its number in store.h: for tests */
    void *status;
    if (bug != NULL && strtoul(bug, NULL, 10) < BUGS) store_bug = (enum store_bug)strtoul(bug, NULL, 10);
    int error = cc_run(run, &c, &status);
    if (error != 0) fprintf(stderr, "cc-store: %s\n", strerror(error));
    return error != 0 ? 1 : (int)(intptr_t)status;
}
