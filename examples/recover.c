/* recover.c - some jobs panic: each fails alone, releases what it holds, and reports why. */
#include <ccc/ccc.h>
#include <stdio.h>

struct job {
    const char *text;
    long result;
};

static int open_files;

static void close_file(void *name) {
    open_files--;
    printf("  closed '%s'\n", (const char *)name);
}

static long digit(char c) {
    if (c < '0' || c > '9') cc_panic("'%c' is no digit", c);
    return c - '0';
}

/* Whatever happens below, the file is closed. */
static void parse(void *arg) {
    struct job *job = arg;
    open_files++;
    CC_DEFER(close_file, (void *)job->text);
    for (const char *c = job->text; *c != '\0'; c++) job->result = job->result * 10 + digit(*c);
}

/* As in Go: a deferred function stops the panic, and the scope ends well. */
static void use_a_default(void *arg) {
    CCPanic why;
    if (cc_recover(&why)) {
        printf("  %s; taken as -1\n", why.message);
        ((struct job *)arg)->result = -1;
    }
}

static void *parse_or_default(void *arg) {
    CC_DEFER(use_a_default, arg);
    parse(arg);
    return arg;
}

int main(void) {
    struct job jobs[] = {{.text = "42"}, {.text = "4x2"}, {.text = "7"}};
    CCPanic why;
    for (int i = 0; i < 3; i++) {
        if (cc_try(parse, &jobs[i], &why) == 0)
            printf("%s is %ld\n", jobs[i].text, jobs[i].result);
        else
            printf("%s: %s\n", jobs[i].text, why.message);
    }
    struct job odd = {.text = "1e6"};
    if (cc_run(parse_or_default, &odd, NULL) == 0) printf("%s is %ld\n", odd.text, odd.result);
    printf("%d files are open\n", open_files);
    return 0;
}
