/* request.c - the head of an HTTP request: parsing and access control. */
#include "live/live.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In constant time. */
static bool is_token(const char *text, const char *token) {
    unsigned differ = 0;
    for (unsigned i = 0; i < TOKEN_LENGTH; i++) {
        if (text[i] == '\0') return false;
        differ |= (unsigned)(text[i] ^ token[i]);
    }
    return differ == 0 && text[TOKEN_LENGTH] == '\0';
}

bool cc__request_value(const struct request *request, const char *key, char *value, size_t size) {
    size_t length = strlen(key);
    for (const char *at = request->query; at != NULL; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, key, length) != 0 || at[length] != '=') continue;
        size_t n = strcspn(at + length + 1, "&");
        if (n >= size) return false;
        memcpy(value, at + length + 1, n);
        value[n] = '\0';
        return true;
    }
    return false;
}

unsigned cc__request_number(const struct request *request, const char *key, unsigned max, unsigned otherwise) {
    char text[12], *end;
    if (!cc__request_value(request, key, text, sizeof text) || text[0] < '0' || text[0] > '9') return otherwise;
    unsigned long value = strtoul(text, &end, 10);
    return *end == '\0' && value <= max ? (unsigned)value : otherwise;
}

/* LIVE-2: a name of this machine, in the form that a browser sends. */
static bool is_our_name(const char *host, unsigned port) {
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char name[40];
    for (size_t i = 0; i < array_len(names); i++) {
        snprintf(name, sizeof name, "%s:%u", names[i], port);
        if (strcasecmp(host, name) == 0) return true;
    }
    return false;
}

/* The next line, without its end; NULL: the head is over. */
static char *next_line(char **text) {
    char *line = *text, *end = strstr(line, "\r\n");
    if (end == NULL || end == line) return NULL;
    *end = '\0';
    *text = end + 2;
    return line;
}

/* The value of a header field if it has that name; else NULL. */
static char *field(char *line, const char *name) {
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':') return NULL;
    char *value = line + length + 1 + strspn(line + length + 1, " \t");
    size_t n = strlen(value);
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t')) value[--n] = '\0';
    return value;
}

static int read_first_line(char *line, struct request *request) {
    char *target = strchr(line, ' '), *version = target != NULL ? strchr(target + 1, ' ') : NULL;
    if (version == NULL || (strcmp(version, " HTTP/1.1") != 0 && strcmp(version, " HTTP/1.0") != 0)) return 400;
    *target++ = *version = '\0';
    if (strcmp(line, "GET") != 0) return 405;
    if (target[0] != '/') return 400;
    char *query = strchr(target, '?');
    if (query != NULL) *query++ = '\0';
    request->path = target;
    request->query = query;
    return 200;
}

int cc__request_read(char *text, unsigned port, const char *token, struct request *request) {
    unsigned hosts = 0;
    bool ours = false, knows = false;
    *request = (struct request){0};
    char *line = next_line(&text), value[TOKEN_LENGTH + 1];
    int status = line != NULL ? read_first_line(line, request) : 400;
    while ((line = next_line(&text)) != NULL) {
        char *host = field(line, "Host"), *given = field(line, "Authorization");
        if (host != NULL) {
            hosts++;
            ours = is_our_name(host, port);
        }
        if (given != NULL && strncasecmp(given, "Bearer ", 7) == 0) knows |= is_token(given + 7, token);
    }
    if (port == 0 || status == 400) return status;
    if (hosts != 1 || !ours) return 403; /* before any other status */
    knows |= cc__request_value(request, "t", value, sizeof value) && is_token(value, token);
    /* The page itself contains nothing about the program: it requests that with the token. */
    bool page = status == 200 && strcmp(request->path, "/") == 0;
    return knows || page ? status : 403;
}
