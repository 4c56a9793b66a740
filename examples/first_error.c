/* first_error.c - the first error cancels the other tasks, and the nursery's wait returns it with its message. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

static int gave_up;

CC_TASK(fetch, { int part; }) {
    char name[CC_FIBER_NAME_MAX];
    snprintf(name, sizeof name, "fetch-%d", self->part);
    cc_fiber_set_name(name);
    if (self->part == 3) return cc_fail(EIO, "part %d is damaged", self->part);
    int rc = cc_sleep_ms(3600 * 1000); /* a long transfer */
    if (rc == ECANCELED) __atomic_fetch_add(&gave_up, 1, __ATOMIC_RELAXED);
    return CC_ERROR(rc);
}

static void *download(void *arg) {
    (void)arg;
    CCNursery *n = cc_nursery_create(NULL);
    if (n == NULL) return NULL;
    for (int part = 0; part < 10; part++) CC_GO_IN(n, fetch, .part = part);
    int rc = cc_nursery_wait(n); /* returns at once, not in an hour */
    CCError error;
    if (rc != 0 && cc_nursery_failure(n, 0, &error) == 0)
        printf("%s: %s (%s).\n", error.name, error.text, error.code == EIO ? "EIO" : "?");
    printf("%d others gave up; %zu failure in all.\n", gave_up, cc_nursery_failures(n));
    cc_nursery_free(n);
    return NULL;
}

int main(void) {
    cc_run(download, NULL, NULL);
    return cc_runtime_shutdown(1000);
}
