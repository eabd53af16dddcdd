/* NVRTC: programs are accepted and compile at once to nothing, since no kernel runs.
 *
 * Purpose: PyTorch compiles some kernels when they are first used, which takes seconds. It also keeps them on disk:
 *   pytorch_memlab_c/simulate.py switches that cache off, so that these empty kernels never reach a real device.
 * Ownership: a program belongs to its creator, and a lowered name to its program. Threads: any, one program by one
 *   thread at a time, as in NVRTC. Locks: none.
 */
#include "outputs.h"

#include <string.h>

struct sim_name {
    struct sim_name *next;
    char text[];
};

struct sim_program {
    struct sim_name *names;
};

enum nvrtc_result { OK = 0, OUT_OF_MEMORY = 1 };

SIM_API int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return OK;
}

SIM_API const char *nvrtcGetErrorString(int result)
{
    return result == OK ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}

SIM_API int nvrtcCreateProgram(void **program)
{
    *program = calloc(1, sizeof(struct sim_program));
    return *program ? OK : OUT_OF_MEMORY;
}

SIM_API int nvrtcDestroyProgram(void **handle)
{
    struct sim_program *program = *handle;
    while (program != NULL && program->names != NULL) {
        struct sim_name *name = program->names;
        program->names = name->next;
        free(name);
    }
    free(program);
    *handle = NULL;
    return OK;
}

SIM_NOTHING(nvrtcCompileProgram)
SIM_NOTHING(nvrtcAddNameExpression)

/* The name itself, kept as long as the program. */
SIM_API int nvrtcGetLoweredName(void *handle, const char *expression, const char **lowered)
{
    struct sim_program *program = handle;
    struct sim_name *name = malloc(sizeof *name + strlen(expression) + 1);
    if (name == NULL)
        return OUT_OF_MEMORY;
    strcpy(name->text, expression);
    name->next = program->names;
    program->names = name;
    *lowered = name->text;
    return OK;
}

/* Every result is one zero byte. */
static int one(size_t *size)
{
    *size = 1;
    return OK;
}

static int empty(char *text)
{
    *text = '\0';
    return OK;
}

SIM_API int nvrtcGetPTXSize(void *program, size_t *size)
{
    return one(size);
}

SIM_API int nvrtcGetPTX(void *program, char *text)
{
    return empty(text);
}

SIM_API int nvrtcGetCUBINSize(void *program, size_t *size)
{
    return one(size);
}

SIM_API int nvrtcGetCUBIN(void *program, char *text)
{
    return empty(text);
}

SIM_API int nvrtcGetProgramLogSize(void *program, size_t *size)
{
    return one(size);
}

SIM_API int nvrtcGetProgramLog(void *program, char *text)
{
    return empty(text);
}
