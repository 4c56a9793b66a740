/* cpus.c - the number of usable CPUs follows the affinity mask and every CPU quota on the way up the cgroup tree. */
#include "harness.h"

#include "os/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64] = "/tmp/ccc-cpus-XXXXXX";

static void make_root(void) {
    CHECK(mkdtemp(root) != NULL);
}

static void make_dir(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    CHECK_EQ(mkdir(path, 0700), 0);
}

static void write_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

static unsigned limit_of(unsigned by_affinity, const char *groups) {
    char path[256];
    write_file("groups", groups);
    snprintf(path, sizeof path, "%s/groups", root);
    return cc__cpus_limit(by_affinity, path, root);
}

static void remove_root(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK_EQ(system(command), 0);
}

TEST(no_cgroup_file_leaves_the_mask) {
    CHECK_EQ(cc__cpus_limit(7, "/nonexistent/groups", "/nonexistent"), 7);
}

TEST(quota_of_version_2_rounds_up) {
    make_root();
    make_dir("app");
    write_file("app/cpu.max", "150000 100000\n");
    CHECK_EQ(limit_of(8, "0::/app\n"), 2);
    CHECK_EQ(limit_of(1, "0::/app\n"), 1);
    write_file("app/cpu.max", "20000 100000\n");
    CHECK_EQ(limit_of(8, "0::/app\n"), 1);
    write_file("app/cpu.max", "max 100000\n");
    CHECK_EQ(limit_of(8, "0::/app\n"), 8);
    write_file("app/cpu.max", "nonsense\n");
    CHECK_EQ(limit_of(8, "0::/app\n"), 8);
    remove_root();
}

TEST(quota_of_a_parent_holds_too) {
    make_root();
    make_dir("slice");
    make_dir("slice/app");
    write_file("slice/cpu.max", "300000 100000\n");
    write_file("slice/app/cpu.max", "max 100000\n");
    CHECK_EQ(limit_of(8, "0::/slice/app\n"), 3);
    write_file("slice/app/cpu.max", "200000 100000\n");
    CHECK_EQ(limit_of(8, "0::/slice/app\n"), 2);
    remove_root();
}

TEST(quota_of_version_1) {
    make_root();
    make_dir("cpu");
    make_dir("cpu/app");
    write_file("cpu/app/cpu.cfs_quota_us", "400000\n");
    write_file("cpu/app/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(limit_of(8, "3:memory:/app\n2:cpu,cpuacct:/app\n"), 4);
    write_file("cpu/app/cpu.cfs_quota_us", "-1\n");
    CHECK_EQ(limit_of(8, "2:cpu,cpuacct:/app\n"), 8);
    CHECK_EQ(limit_of(8, "4:cpuset:/app\n"), 8);
    remove_root();
}

TEST(usable_cpus_follow_the_mask) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(cc__cpus_usable() >= 1);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(cc__cpus_usable(), 1);
}
