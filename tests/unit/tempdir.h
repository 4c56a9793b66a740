/* tempdir.h - every case runs in its own temporary directory. */
#ifndef CCC_TESTS_UNIT_TEMPDIR_H
#define CCC_TESTS_UNIT_TEMPDIR_H

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char tempdir[64];

static inline void enter_tempdir(void) {
    strcpy(tempdir, "/tmp/ccc-tempdir-XXXXXX");
    CHECK(mkdtemp(tempdir) != NULL);
    CHECK_EQ(chdir(tempdir), 0);
}

static inline void leave_tempdir(void) {
    char command[100];
    CHECK_EQ(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", tempdir);
    CHECK_EQ(system(command), 0);
}

#endif
