/* home.h - every case runs in its own temporary directory. */
#ifndef CCC_TESTS_UNIT_HOME_H
#define CCC_TESTS_UNIT_HOME_H

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char home[64];

static inline void enter_home(void) {
    strcpy(home, "/tmp/ccc-home-XXXXXX");
    CHECK(mkdtemp(home) != NULL);
    CHECK_EQ(chdir(home), 0);
}

static inline void leave_home(void) {
    char command[100];
    CHECK_EQ(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", home);
    CHECK_EQ(system(command), 0);
}

#endif
