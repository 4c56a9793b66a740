/* chat.c - a chat server with rooms: chat WHERE, as in chat tcp://:7000; then talk to it with nc.
 *
 *   /nick NAME    /join ROOM    anything else goes to everybody in the room
 *
 * Each client has a queue and a fiber that writes it out. A client that does not read must not block the others or use
 * unlimited memory: when its queue is full, it is disconnected. Without arguments the program shows all that. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 200, QUEUE = 16, NAME = 24 };

struct message {
    char text[LINE + NAME + 8];
};

struct client {
    CCConn *conn;
    CCChan *queue; /* of struct message */
    char nick[NAME], room[NAME];
    bool slow; /* its queue was full */
    struct client *next;
};

static struct {
    CCMutex mutex;
    struct client *first;
} chat;

/* Sends to everybody in the room but one. Never waits. */
static void say(const char *room, const struct client *but, const char *format, const char *who, const char *text) {
    struct message m;
    snprintf(m.text, sizeof m.text, format, who, text);
    cc_mutex_lock_uncancellable(&chat.mutex);
    for (struct client *c = chat.first; c != NULL; c = c->next) {
        if (c == but || strcmp(c->room, room) != 0 || c->slow) continue;
        if (cc_chan_send_try(c->queue, &m, sizeof m) != EAGAIN) continue;
        c->slow = true;
        cc_shutdown(c->conn, CC_SHUT_BOTH); /* ends its reads and writes */
    }
    cc_mutex_unlock(&chat.mutex);
}

static void enter(struct client *c, const char *room) {
    cc_mutex_lock_uncancellable(&chat.mutex);
    snprintf(c->room, sizeof c->room, "%.*s", NAME - 1, room);
    cc_mutex_unlock(&chat.mutex);
}

static void add(struct client *c) {
    cc_mutex_lock_uncancellable(&chat.mutex);
    c->next = chat.first;
    chat.first = c;
    cc_mutex_unlock(&chat.mutex);
}

static void drop(struct client *c) {
    cc_mutex_lock_uncancellable(&chat.mutex);
    struct client **link = &chat.first;
    while (*link != c) link = &(*link)->next;
    *link = c->next;
    cc_mutex_unlock(&chat.mutex);
}

/* Writes the queue out, all lines that are there at a time. */
CC_CHILD(write_queue, { struct client *client; }) {
    struct client *c = self->client;
    struct message m;
    CCWriter out;
    cc_writer_init(&out, c->conn, 0);
    int error = 0;
    while (error == 0 && cc_chan_recv(c->queue, &m, sizeof m) == 0) {
        error = cc_writer_print(&out, "%s\n", m.text);
        while (error == 0 && cc_chan_recv_try(c->queue, &m, sizeof m) == 0)
            error = cc_writer_print(&out, "%s\n", m.text);
        if (error == 0) error = cc_writer_flush(&out);
    }
    cc_writer_free(&out);
    return 0; /* the reader notices a disconnect */
}

static int read_lines(struct client *c) {
    CCReader in;
    char *line;
    size_t n;
    int error;
    cc_reader_init(&in, c->conn, LINE);
    while ((error = cc_reader_line(&in, &line, &n)) == 0) {
        if (strncmp(line, "/nick ", 6) == 0) {
            snprintf(c->nick, sizeof c->nick, "%.*s", NAME - 1, line + 6);
        } else if (strncmp(line, "/join ", 6) == 0) {
            say(c->room, c, "* %s has left%s", c->nick, "");
            enter(c, line + 6);
            say(c->room, NULL, "* %s has joined %s", c->nick, c->room);
        } else {
            say(c->room, NULL, "%s: %s", c->nick, line);
        }
    }
    cc_reader_free(&in);
    return error == ENODATA ? 0 : error; /* EMSGSIZE: the line is too long */
}

static int handle(CCConn *conn, void *arg) {
    struct client c = {.conn = conn, .nick = "somebody", .room = "lobby"};
    int error = ENOMEM;
    (void)arg;
    c.queue = cc_chan_create(sizeof(struct message), QUEUE);
    if (c.queue == NULL) return ENOMEM;
    add(&c);
    CC_NURSERY(n, .result = &error) {
        if (CC_GO_IN(n, write_queue, .client = &c) != 0) break;
        error = read_lines(&c);
        drop(&c);
        cc_chan_close(c.queue); /* the writer ends when the queue is empty */
        cc_shutdown(conn, CC_SHUT_READ);
        if (c.slow || error != 0) cc_nursery_cancel(n);
    }
    say(c.room, NULL, c.slow ? "* %s was too slow%s" : "* %s has left%s", c.nick, "");
    cc_chan_free(c.queue);
    return 0;
}

/* ---- demonstration ---- */

struct user {
    CCConn *conn;
    CCReader in;
};

static void tell(struct user *u, const char *line) {
    if (cc_write(u->conn, line, strlen(line), NULL) != 0) puts("cannot write");
}

static void hear(struct user *u, const char *who) {
    char *line;
    size_t n;
    int error = cc_reader_line(&u->in, &line, &n);
    printf("%s hears: %s\n", who, error == 0 ? line : strerror(error));
}

static struct user come(const CCAddr *addr, const char *first) {
    struct user u = {0};
    if (cc_dial_addr(&u.conn, addr, NULL, CC_FOREVER) != 0) puts("cannot connect");
    cc_reader_init(&u.in, u.conn, 0);
    tell(&u, first);
    return u;
}

static void leave(struct user *u) {
    cc_reader_free(&u->in);
    cc_close(u->conn);
}

static void scene(const CCAddr *addr) {
    struct user ann = come(addr, "/nick Ann\n/join c\n");
    hear(&ann, "Ann");
    struct user bob = come(addr, "/nick Bob\n/join c\n");
    hear(&ann, "Ann");
    hear(&bob, "Bob");
    tell(&bob, "hello\n");
    hear(&ann, "Ann");
    hear(&bob, "Bob");
    struct user sloth = come(addr, "/nick Sloth\n/join c\n"); /* never reads */
    hear(&ann, "Ann");
    hear(&bob, "Bob");
    char *line = "", text[160];
    memset(text, '.', sizeof text);
    memcpy(text, "spam ", 5);
    text[sizeof text - 2] = '\n';
    text[sizeof text - 1] = 0;
    for (size_t n; strchr(line, '*') == NULL;) { /* until the server disconnects the slow client */
        tell(&bob, text);
        if (cc_reader_line(&bob.in, &line, &n) != 0 || cc_reader_line(&ann.in, &line, &n) != 0) break;
    }
    printf("Ann hears: %s\n", line);
    leave(&sloth);
    leave(&bob);
    leave(&ann);
}

static void *run(void *arg) {
    const char *where = arg;
    CCListener *listener;
    CCAddr addr;
    int error = cc_listen(&listener, where != NULL ? where : "tcp://127.0.0.1:0?send_buffer=4096", NULL);
    if (error != 0) return CC_ERROR(error);
    if (where != NULL) return CC_ERROR(cc_serve(NULL, listener, handle, NULL, NULL));
    cc_listener_addr(listener, &addr);
    CC_NURSERY(servers) {
        if (cc_serve(servers, listener, handle, NULL, NULL) == 0) scene(&addr);
        cc_nursery_cancel(servers);
    }
    cc_listener_close(listener);
    return NULL;
}

int main(int argc, char **argv) {
    void *result = NULL;
    int error = cc_run(run, argc > 1 ? argv[1] : NULL, &result);
    if (error == 0) error = (int)(intptr_t)result;
    if (error != 0) fprintf(stderr, "chat: %s\n", strerror(error));
    return error != 0;
}
