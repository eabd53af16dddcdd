/* Limits that several units share. */
#ifndef PML_LIMITS_H
#define PML_LIMITS_H

/* A device is a slot: 0 is the CPU, 1 + i is accelerator i. */
#define PML_MAX_DEVICES 33
#define PML_CPU 0

/* Pictures that are taken at the same time: each has a bit in sets of them. */
#define PML_MAX_GROUPS 64

#endif
