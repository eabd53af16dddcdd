/* Stands for a libc10_cuda.so that reports but uses no events. */
#include "runtime.h"

void plain_report(int64_t size, size_t allocated, size_t reserved, int index)
{
    struct fake_device device = {1, (int8_t)index};
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(NULL, size, allocated, reserved, device);
}
