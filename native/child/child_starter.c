/* The program pml_starter: starts one command as a child of its own parent, and ends.
 *
 * Why it exists: Linux counts into a process's `ru_maxrss` what was resident before `exec`, and that is the memory of
 * whoever forked, also with vfork and posix_spawn. Forked from this small program instead, the child begins with about
 * a megabyte, and CLONE_PARENT makes it the child of the process that measures. Elsewhere `ru_maxrss` begins with the
 * new program, and this one becomes the command.
 *
 * Usage: pml_starter REPORT-FD SIGNAL-MASK +DIRECTORY|- COUNT CANDIDATE... ARGUMENT...
 * All signals are blocked on entry; SIGNAL-MASK has a 0 or 1 for each signal from 1 on, the mask for the command. The
 * first of COUNT candidates that can be executed is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif

#include "child/child_start.h"

extern char **environ;

static int tell(int report, enum pml_start_step step, int value)
{
    const struct pml_start_report message = {.step = step, .value = value};
    return write(report, &message, sizeof message) == sizeof message ? 0 : -1;
}

static pid_t separate(void)
{
#ifdef __linux__
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
#else
    return 0;
#endif
}

/* Whatever was open without the mark would be the command's for good. */
static void close_on_exec(int report)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) == 0)
        return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(report, F_SETFD, FD_CLOEXEC);
}

static void unblock_signals(const char *blocked)
{
    sigset_t mask;
    sigemptyset(&mask);
    for (int number = 1; blocked[number - 1]; number++)
        if (blocked[number - 1] == '1')
            sigaddset(&mask, number);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Returns only if none could be executed: the most specific errno. */
static int execute(char *const candidate[], int count, char *const command[])
{
    int error = 0;
    for (int i = 0; i < count; i++) {
        execve(candidate[i], command, environ);
        if (errno != ENOENT && errno != ENOTDIR && !error)
            error = errno;
    }
    return error ? error : ENOENT;
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    int report = atoi(argv[1]), count = atoi(argv[4]);
    const char *directory = argv[3];
    if (count < 1 || count > argc - 6)
        return 2;
    pid_t child = separate();
    if (child < 0)
        return tell(report, PML_START_SEPARATE, errno);
    if (child > 0)
        return 0;
    if (tell(report, PML_START_PID, getpid()) < 0)
        return 2; /* who measures is gone */
    close_on_exec(report);
    unblock_signals(argv[2]);
    if (directory[0] == '+' && chdir(directory + 1) < 0)
        return tell(report, PML_START_DIRECTORY, errno) < 0 ? 2 : 127;
    int error = execute(argv + 5, count, argv + 5 + count);
    return tell(report, PML_START_EXECUTE, error) < 0 ? 2 : 127;
}
