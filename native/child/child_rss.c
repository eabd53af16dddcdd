/* One new child process and its highest resident memory, by `wait4` of exactly that child.
 *
 * The child is started by the program pml_starter, so that this process's own memory stays out of the figure (see
 * child_starter.c). Signals reach the child as they would reach one of `subprocess`: same process group, same mask, and
 * what Python ignores back at its default. Needs the GIL, and lets it go while waiting.
 */
#include "child/child_rss.h"

#ifdef _WIN32

PyObject *pml_child_rss_run(PyObject *module, PyObject *args)
{
    return PyErr_Format(PyExc_NotImplementedError, "Windows has no wait4");
}

#else

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child/child_start.h"

#ifdef __APPLE__
#define RSS_UNIT 1
#else
#define RSS_UNIT 1024
#endif

#define SIGNALS 64
#define GRACE_MS 250 /* after Ctrl-C, which the child has got too */
#define POLL_MS 5

extern char **environ;

/* The child's end; `known` is false if someone else has waited for it. */
struct ended {
    bool known;
    int status;
    struct rusage usage;
};

/* The pipe: the starter gets a copy of `write` as number `inherited`. All three are closed on exec here. */
struct pipe {
    int read;
    int write;
    int inherited;
};

static void pipe_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int pipe_open(struct pipe *p)
{
    int fd[2];
    *p = (struct pipe){-1, -1, -1};
#ifdef __APPLE__
    int failed = pipe(fd) < 0;
    if (!failed)
        failed = fcntl(fd[0], F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd[1], F_SETFD, FD_CLOEXEC) < 0;
#else
    int failed = pipe2(fd, O_CLOEXEC) < 0;
#endif
    if (!failed) {
        p->read = fd[0];
        p->write = fd[1];
        p->inherited = fcntl(p->write, F_DUPFD_CLOEXEC, 3);
    }
    if (!failed && p->inherited >= 0)
        return 0;
    PyErr_SetFromErrno(PyExc_OSError);
    pipe_close(&p->read);
    pipe_close(&p->write);
    return -1;
}

static void describe_mask(char text[SIGNALS + 1])
{
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number <= SIGNALS; number++)
        text[number - 1] = sigismember(&mask, number) == 1 ? '1' : '0';
    text[SIGNALS] = '\0';
}

/* Signals wait until the child's id is known, so that none can part the two. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t all, ignored_by_python;
    sigfillset(&all);
    sigemptyset(&ignored_by_python);
    sigaddset(&ignored_by_python, SIGPIPE);
    sigaddset(&ignored_by_python, SIGXFSZ);
    int error = posix_spawnattr_setsigmask(attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &ignored_by_python);
    return error ? error : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* An errno, or 0. */
static int spawn(pid_t *starter, char *const argv[], const struct pipe *p)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, p->write, p->inherited);
        if (!error)
            error = set_signals(&attributes);
        if (!error)
            error = posix_spawn(starter, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* argv of the starter; the strings stay their owners'. */
static char **make_argv(const char *starter, const char *report, const char *mask, PyObject *arguments)
{
    Py_ssize_t count = PyTuple_GET_SIZE(arguments);
    char **argv = calloc((size_t)count + 4, sizeof *argv);
    if (!argv)
        return (char **)PyErr_NoMemory();
    argv[0] = (char *)starter;
    argv[1] = (char *)report;
    argv[2] = (char *)mask;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(arguments, i), &argv[3 + i], NULL) < 0) {
            free(argv);
            return NULL;
        }
    return argv;
}

static void wait_for_starter(pid_t starter)
{
    while (waitpid(starter, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Reads the reports of the starter and the child: the child's id (0: there is none) and the step that failed. */
static pid_t read_reports(int fd, struct pml_start_report *failure)
{
    struct pml_start_report message;
    pid_t child = 0;
    ssize_t got;
    while ((got = read(fd, &message, sizeof message)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        if (got != sizeof message)
            continue;
        if (message.step == PML_START_PID)
            child = message.value;
        else
            *failure = message;
    }
    return child;
}

/* The child's id, or -1 with an exception set. What failed in the child is in `failure`. */
static pid_t start(const char *path, PyObject *arguments, struct pml_start_report *failure)
{
    struct pipe p;
    char report[16], mask[SIGNALS + 1];
    pid_t starter, child = 0;
    if (pipe_open(&p) < 0)
        return -1;
    PyOS_snprintf(report, sizeof report, "%d", p.inherited);
    describe_mask(mask);
    char **argv = make_argv(path, report, mask, arguments);
    int error = argv ? spawn(&starter, argv, &p) : 0;
    bool spawned = argv && !error;
    free(argv);
    pipe_close(&p.write);
    pipe_close(&p.inherited);
    if (spawned) {
        Py_BEGIN_ALLOW_THREADS child = read_reports(p.read, failure);
        if (child != starter)
            wait_for_starter(starter);
        Py_END_ALLOW_THREADS
    }
    pipe_close(&p.read);
    if (child > 0)
        return child;
    errno = error ? error : failure->step == PML_START_SEPARATE ? failure->value : ECHILD;
    if (!PyErr_Occurred())
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
    return -1;
}

/* Whether the child has ended within the grace that Ctrl-C gives it. */
static bool ends_soon(pid_t child, int *status)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    for (int waited = 0; waited < GRACE_MS; waited += POLL_MS) {
        if (waitpid(child, status, WNOHANG) != 0)
            return true; /* or someone else has waited for it */
        nanosleep(&pause, NULL);
    }
    return false;
}

/* The caller has an exception to raise: no child is left behind. */
static void end(pid_t child)
{
    int status;
    Py_BEGIN_ALLOW_THREADS if (!ends_soon(child, &status))
    {
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    Py_END_ALLOW_THREADS
}

static int wait_for(pid_t child, struct ended *ended)
{
    for (;;) {
        if (PyErr_CheckSignals() < 0) {
            end(child);
            return -1;
        }
        pid_t got;
        Py_BEGIN_ALLOW_THREADS got = wait4(child, &ended->status, 0, &ended->usage);
        Py_END_ALLOW_THREADS ended->known = got == child;
        if (got == child || errno == ECHILD)
            return 0;
        if (errno != EINTR) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
    }
}

static PyObject *result(const struct ended *ended)
{
    if (!ended->known)
        return Py_BuildValue("(OO)", Py_None, Py_None);
    int code = WIFSIGNALED(ended->status) ? -WTERMSIG(ended->status) : WEXITSTATUS(ended->status);
    return Py_BuildValue("(iL)", code, (long long)ended->usage.ru_maxrss * RSS_UNIT);
}

PyObject *pml_child_rss_run(PyObject *module, PyObject *args)
{
    const char *starter;
    PyObject *arguments, *executable, *directory;
    struct pml_start_report failure = {.step = PML_START_PID};
    struct ended ended = {.known = false};
    if (!PyArg_ParseTuple(args, "yO!OO:run_child", &starter, &PyTuple_Type, &arguments, &executable, &directory))
        return NULL;
    pid_t child = start(starter, arguments, &failure);
    if (child < 0 || wait_for(child, &ended) < 0)
        return NULL;
    if (failure.step == PML_START_PID)
        return result(&ended);
    errno = failure.value;
    PyObject *culprit = failure.step == PML_START_DIRECTORY ? directory : executable;
    return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, culprit);
}

#endif
