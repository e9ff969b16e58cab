/*
 * Stands between a server and the system: tells what it does to its database's files and what it acknowledges, and can
 * make the disk refuse writes and set the clock. Loaded into the server (LD_PRELOAD); each variable switches on one thing.
 *
 *   SKIFF_SHIM_FOLDER  the folder of state.db, or the data of a Postgres, of which the tables are meant
 *   SKIFF_SHIM_TRACE   the file that records are appended to: `struct record`, then as many bytes as it says
 *   SKIFF_SHIM_REFUSE  while this file exists, writes to the database's files fail with the error number in it
 *   SKIFF_SHIM_ROOM    while this file exists, the files of the folder have as many bytes together as the number in it:
 *                      writes that make one longer than that leaves fail as on a full disk
 *   SKIFF_SHIM_CLOCK   a file with a number: the seconds that the clock is off by
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint64_t at;
    uint64_t count;
    char what; /* W(rite), T(runcate), S(ync), A(cknowledge) */
    char file; /* D(atabase), L(og), F(older) */
    char unused[6];
};

/* What is told has happened in this order: an operation and its record are one step. */
static pthread_mutex_t step = PTHREAD_MUTEX_INITIALIZER;

static char file_of(int fd) {
    const char *folder = getenv("SKIFF_SHIM_FOLDER");
    char link[64], path[4096];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(link, path, sizeof path - 1);
    if (count <= 0) return 0;
    path[count] = 0;
    size_t length = strlen(folder);
    if (strncmp(path, folder, length)) return 0;
    const char *name = path + length;
    if (!strcmp(name, "/state.db") || !strncmp(name, "/base/", strlen("/base/"))) return 'D';
    return !*name ? 'F' : !strcmp(name, "/state.db-wal") ? 'L' : 0;
}

static void tell(char what, char file, uint64_t at, const struct iovec *parts, int part_count) {
    const char *path = getenv("SKIFF_SHIM_TRACE");
    if (!path) return;
    int before = errno;
    struct record record = {.what = what, .file = file, .at = at};
    struct iovec all[16] = {{&record, sizeof record}};
    int used = 1;
    for (; used <= part_count && used < 16; used++) {
        all[used] = parts[used - 1];
        record.count += parts[used - 1].iov_len;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_writev, fd, all, used) < 0) abort();
    close(fd);
    errno = before;
}

/* The number in the file that a variable names; 0 where there is none. Leaves errno alone. */
static long number_in(const char *variable) {
    int before = errno;
    const char *path = getenv(variable);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[32] = {0};
    long number = fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? atol(text) : 0;
    if (fd >= 0) close(fd);
    errno = before;
    return number;
}

static int is_refused(void) {
    long number = number_in("SKIFF_SHIM_REFUSE");
    if (number) errno = (int)number;
    return number != 0;
}

/* How many bytes the files of the folder have together. */
static long taken(void) {
    long bytes = 0;
    DIR *folder = opendir(getenv("SKIFF_SHIM_FOLDER"));
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat about;
        if (!fstatat(dirfd(folder), entry->d_name, &about, 0) && S_ISREG(about.st_mode)) bytes += about.st_size;
    }
    if (folder) closedir(folder);
    return bytes;
}

static int is_beyond_room(int fd, off64_t end) {
    long room = number_in("SKIFF_SHIM_ROOM");
    struct stat about;
    if (!room || fstat(fd, &about) || end <= about.st_size || taken() + end - about.st_size <= room) return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    char file = file_of(fd);
    if (!file) return syscall(SYS_pwrite64, fd, bytes, count, at);
    if (is_refused() || is_beyond_room(fd, at + (off64_t)count)) return -1;
    pthread_mutex_lock(&step);
    ssize_t written = syscall(SYS_pwrite64, fd, bytes, count, at);
    struct iovec part = {(void *)bytes, written > 0 ? (size_t)written : 0};
    if (written > 0) tell('W', file, (uint64_t)at, &part, 1);
    pthread_mutex_unlock(&step);
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return pwrite64(fd, bytes, count, at); }

/* How a Postgres above 15 makes room for more pages; not traced. */
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    if (file_of(fd) && is_refused()) return -1;
    return syscall(SYS_pwritev, fd, parts, count, at, 0);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return pwritev64(fd, parts, count, at); }

int posix_fallocate64(int fd, off64_t at, off64_t length) {
    if (file_of(fd) && is_refused()) return errno;
    return syscall(SYS_fallocate, fd, 0, at, length) ? errno : 0;
}

int posix_fallocate(int fd, off_t at, off_t length) { return posix_fallocate64(fd, at, length); }

int ftruncate64(int fd, off64_t length) {
    char file = file_of(fd);
    pthread_mutex_lock(&step);
    int failed = (int)syscall(SYS_ftruncate, fd, length);
    if (file && !failed) tell('T', file, (uint64_t)length, NULL, 0);
    pthread_mutex_unlock(&step);
    return failed;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int sync_by(long call, int fd) {
    char file = file_of(fd);
    pthread_mutex_lock(&step);
    int failed = (int)syscall(call, fd);
    if (file && !failed) tell('S', file, 0, NULL, 0);
    pthread_mutex_unlock(&step);
    return failed;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

/* An answer that acknowledges is told before it is on its way. */
static void look_at(const struct iovec *parts, int count) {
    static const char created[] = "HTTP/1.1 201";
    if (count < 1 || parts[0].iov_len < sizeof created - 1 || memcmp(parts[0].iov_base, created, sizeof created - 1)) return;
    pthread_mutex_lock(&step);
    tell('A', 0, 0, parts, count);
    pthread_mutex_unlock(&step);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    look_at(parts, count);
    return syscall(SYS_writev, fd, parts, count);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    struct iovec part = {(void *)bytes, count};
    look_at(&part, 1);
    return syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (!failed && clock == CLOCK_REALTIME) time->tv_sec += number_in("SKIFF_SHIM_CLOCK");
    return failed;
}
