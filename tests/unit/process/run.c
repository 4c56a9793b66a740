/* run.c - cc_process_run: input, output, limits, deadlines, cancellation. */
#include "children.h"

static int run_shell(const char *script, CCProcessRun *run) {
    return cc_process_run(&(CCProcessOptions){.argv = SHELL(script), .grace_ms = 20}, run);
}

static void *collects(void *arg) {
    CCProcessRun run = {0};
    CHECK_EQ(run_shell("echo out; echo err >&2; exit 3", &run), 0);
    CHECK_EQ(run.status.code, 3);
    CHECK(run.out_size == 4 && strcmp(run.out, "out\n") == 0);
    CHECK(run.err_size == 4 && strcmp(run.err, "err\n") == 0);
    cc_process_run_free(&run);
    CHECK(run.out == NULL && run.err == NULL && run.out_size == 0);
    cc_process_run_free(&run);
    cc_process_run_free(NULL);

    CHECK_EQ(run_shell(":", &run), 0);
    CHECK(run.out_size == 0 && strcmp(run.out, "") == 0);
    cc_process_run_free(&run);

    /* Only the streams that were asked for. */
    CCProcessOptions options = {.argv = SHELL("echo a; echo b >&2; cat"), .err = {.kind = CC_PROCESS_STDOUT}};
    CHECK_EQ(cc_process_run(&options, &run), 0);
    CHECK(strcmp(run.out, "a\nb\n") == 0 && run.err == NULL);
    cc_process_run_free(&run);
    options.out.kind = options.err.kind = CC_PROCESS_NULL;
    CHECK_EQ(cc_process_run(&options, &run), 0);
    CHECK(run.out == NULL && run.err == NULL);
    check_no_children();
    return arg;
}

TEST_WORKERS(collects_what_it_writes) {
    needs_pidfd();
    CHECK_EQ(cc_run(collects, NULL, NULL), 0);
    (void)collects(NULL);
}

/* More than pipes hold, both ways at once. */
static void *feeds(void *arg) {
    size_t size = (size_t)test_scale(1 << 20);
    char *input = malloc(size);
    for (size_t i = 0; i < size; i++) input[i] = (char)('a' + i % 26);
    CCProcessRun run = {.input = input, .input_size = size, .limit = size};
    CHECK_EQ(run_shell("cat", &run), 0);
    CHECK_EQ(run.status.code, 0);
    CHECK_EQ(run.out_size, size);
    CHECK(memcmp(run.out, input, size) == 0);
    cc_process_run_free(&run);

    run.limit = size - 1;
    CHECK_EQ(run_shell("cat", &run), EFBIG);
    CHECK_EQ(run.out_size, size - 1);
    CHECK(memcmp(run.out, input, size - 1) == 0);
    cc_process_run_free(&run);

    /* It does not read its input. */
    CHECK_EQ(run_shell("exec <&-; echo done", &run), 0);
    CHECK(strcmp(run.out, "done\n") == 0);
    cc_process_run_free(&run);

    run = (CCProcessRun){.input = "", .input_size = 0};
    CHECK_EQ(run_shell("cat; echo end", &run), 0);
    CHECK(strcmp(run.out, "end\n") == 0);
    cc_process_run_free(&run);
    free(input);
    check_no_children();
    return arg;
}

TEST(feeds_and_collects_more_than_a_pipe_holds) {
    needs_pidfd();
    CHECK_EQ(cc_run(feeds, NULL, NULL), 0);
}

static void *ends_early(void *arg) {
    CCProcessRun run = {.deadline = cc_after_ms(30)};
    CHECK_EQ(run_shell("echo before; trap '' TERM; sleep 1000 & wait", &run), ETIMEDOUT);
    cc_process_run_free(&run);
    check_no_children();

    run = (CCProcessRun){.deadline = CC_PASSED};
    CHECK_EQ(run_shell("echo never", &run), ETIMEDOUT);
    CHECK(run.out == NULL && run.err == NULL);
    check_no_children();

    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(30)) {
        run = (CCProcessRun){0};
        CHECK_EQ(run_shell("exec sleep 1000", &run), ECANCELED);
        cc_process_run_free(&run);
    }
    CHECK_EQ(rc, ETIMEDOUT);
    check_no_children();

    CHECK_EQ(run_shell("yes", &(CCProcessRun){.limit = 10, .reserved = {1}}), EINVAL);
    run = (CCProcessRun){.limit = 10};
    CHECK_EQ(run_shell("yes", &run), EFBIG);
    CHECK(run.out_size == 10 && strcmp(run.out, "y\ny\ny\ny\ny\n") == 0);
    cc_process_run_free(&run);
    check_no_children();
    return arg;
}

TEST(deadlines_cancellation_and_limits_end_it) {
    needs_pidfd();
    CHECK_EQ(cc_run(ends_early, NULL, NULL), 0);
    (void)ends_early(NULL);
}

/* What a shield hides from the caller does not end the program either. */
static void *in_a_shield(void *arg) {
    CCProcessRun run = {0};
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(run_shell("echo out", &run), ECANCELED);
        CC_SHIELD {
            CHECK_EQ(run_shell("echo out", &run), 0);
            CHECK(run.status.code == 0 && strcmp(run.out, "out\n") == 0);
            cc_process_run_free(&run);
            CC_WITH_DEADLINE(cc_after_ms(20)) {
                CHECK_EQ(run_shell("sleep 1000", &run), ECANCELED);
            }
            cc_process_run_free(&run);
        }
    }
    CHECK_EQ(rc, ECANCELED);
    check_no_children();
    return arg;
}

TEST_WORKERS(a_shield_holds_for_the_program) {
    needs_pidfd();
    CHECK_EQ(cc_run(in_a_shield, NULL, NULL), 0);
    (void)in_a_shield(NULL);
}

static void *errors(void *arg) {
    CCProcessRun run = {0};
    const char *missing[] = {"no-such-program-anywhere", NULL};
    CHECK_EQ(cc_process_run(&(CCProcessOptions){.argv = missing}, &run), ENOENT);
    CHECK(run.out == NULL && run.err == NULL);
    CHECK_EQ(cc_process_run(NULL, &run), EINVAL);
    CHECK_EQ(cc_process_run(&(CCProcessOptions){.argv = missing}, NULL), EINVAL);
    run.input_size = 1;
    CHECK_EQ(cc_process_run(&(CCProcessOptions){.argv = missing}, &run), EINVAL);
    return arg;
}

TEST(errors_are_returned) {
    needs_pidfd();
    CHECK_EQ(cc_run(errors, NULL, NULL), 0);
    (void)errors(NULL);
}
