/* response.c - an HTTP response: its head, and a body that is a memfd, a string, or a sentence. */
#include "base/mem.h"
#include "live/live.h"
#include "os/descriptor.h"
#include "os/socket.h"

#include <string.h>
#include <unistd.h>

static const char *reason_of(int status) {
    switch (status) {
    case 200:
        return "OK";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Bad Request";
    }
}

/* The body of an error response. */
static const char *sentence_of(int status) {
    switch (status) {
    case 403:
        return "The address must be the one that the program has written: its host, its port, and its token.\n";
    case 404:
        return "There is no such page, or no such fiber any more.\n";
    case 405:
        return "Only GET is served.\n";
    case 409:
        return "The program changed while it was searched, or another report is in progress: try again.\n";
    case 431:
        return "The request is too long.\n";
    case 503:
        return "Not available now: the runtime is not running, another report is in progress, or there is no memory or "
               "no descriptor.\n";
    default:
        return "This is not understood.\n";
    }
}

void cc__response_free(struct response *r) {
    if (r->body != NULL) (void)fclose(r->body);
    cc__mem_free_libc(r->text);
    *r = (struct response){0};
}

/* A string costs fewer system calls than a memfd. */
bool cc__response_open(struct response *r, bool bounded) {
    int fd = bounded ? -1 : cc__os_memory_file();
    r->body = bounded ? open_memstream(&r->text, &r->text_size) : fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (r->body == NULL && fd >= 0) (void)cc__os_close(fd);
    r->bounded = bounded;
    return r->body != NULL;
}

bool cc__response_close(struct response *r) {
    bool good = fflush(r->body) == 0 && !ferror(r->body);
    if (!r->bounded) {
        r->body_size = good ? lseek(fileno(r->body), 0, SEEK_END) : 0;
        return good;
    }
    good = fclose(r->body) == 0 && good;
    r->body = NULL;
    r->constant = r->text;
    r->body_size = good ? (off_t)r->text_size : 0;
    return good;
}

void cc__response_begin(struct response *r, int status, const char *type, const char *nonce) {
    if (status != 200) {
        cc__response_free(r);
        r->constant = sentence_of(status);
        r->body_size = (off_t)strlen(r->constant);
        type = "text/plain";
    }
    char policy[200] = "default-src 'none'";
    if (nonce != NULL)
        snprintf(policy, sizeof policy,
                 "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:",
                 nonce, nonce);
    int n = snprintf(r->head, sizeof r->head,
                     "HTTP/1.1 %d %s\r\n"
                     "Content-Type: %s; charset=utf-8\r\n"
                     "Content-Length: %lld\r\n"
                     "Content-Security-Policy: %s; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
                     "Cache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\n"
                     "Referrer-Policy: no-referrer\r\n"
                     "Cross-Origin-Resource-Policy: same-origin\r\n"
                     "%s"
                     "Connection: close\r\n\r\n",
                     status, reason_of(status), type, (long long)r->body_size, policy,
                     status == 405 ? "Allow: GET\r\n" : "");
    r->length = (size_t)n;
}

static ssize_t send_some(struct response *r, int fd) {
    size_t left = (size_t)(r->body_size - r->body_sent), head = r->length - r->sent;
    if (head == 0 && r->body != NULL) return cc__os_sendfile(fd, fileno(r->body), &r->body_sent, left);
    struct iovec parts[2] = {{r->head + r->sent, head}, {NULL, 0}};
    if (r->body == NULL) parts[1] = (struct iovec){(char *)(uintptr_t)r->constant + r->body_sent, left};
    ssize_t n = cc__os_writev(fd, parts, 2, OS_OWN_SOCKET);
    if (n <= 0) return n;
    size_t of_head = (size_t)n < head ? (size_t)n : head;
    r->sent += of_head;
    if (r->body == NULL) r->body_sent += n - (ssize_t)of_head;
    return n;
}

ssize_t cc__response_send(struct response *r, int fd) {
    ssize_t n = 1;
    while (n > 0 && (r->sent < r->length || r->body_sent < r->body_size)) n = send_some(r, fd);
    return n;
}
