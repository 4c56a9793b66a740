/* socket_mode.c - the permissions of a Unix socket's file: set from its creation on, and never on another file. */
#include "harness.h"

#include "os/descriptor.h"
#include "os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static unsigned mode_of(const char *path) {
    struct stat status;
    CHECK_EQ(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static int bind_with(const char *path, unsigned mode) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int fd = cc__os_socket(AF_UNIX, SOCK_STREAM);
    CHECK(fd >= 0);
    CHECK_EQ(cc__os_socket_mode(fd, mode), 0);
    CHECK_EQ(cc__os_bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

TEST(from_the_first_moment) {
    char folder[] = "/tmp/ccc-mode-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    mode_t before = umask(0);
    int fd = bind_with(path, 0600);
    CHECK_EQ(mode_of(path), 0600); /* nothing was changed since */
    CHECK_EQ(unlink(path), 0);
    cc__os_close(fd);
    umask(077);
    fd = bind_with(path, 0666);
    CHECK_EQ(mode_of(path), 0600);
    CHECK_EQ(cc__os_chmod_socket(path, 0666), 0); /* in spite of the umask */
    CHECK_EQ(mode_of(path), 0666);
    umask(before);
    CHECK_EQ(unlink(path), 0);
    cc__os_close(fd);
    CHECK_EQ(rmdir(folder), 0);
}

/* Another process has replaced the file between bind and the change of its permissions. */
TEST(no_other_file) {
    char folder[] = "/tmp/ccc-mode-XXXXXX", path[64], secret[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    int file = open(secret, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    close(file);
    CHECK_EQ(symlink(secret, path), 0);
    CHECK_EQ(cc__os_chmod_socket(path, 0666), -EEXIST);
    CHECK_EQ(mode_of(secret), 0600);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(cc__os_chmod_socket(secret, 0666), -EEXIST);
    CHECK_EQ(mode_of(secret), 0600);
    CHECK_EQ(cc__os_chmod_socket(path, 0666), -ENOENT);
    CHECK_EQ(unlink(secret), 0);
    CHECK_EQ(rmdir(folder), 0);
}
