/* Taking pictures: when they begin and end, and copies of them. Needs the GIL; takes devices' locks. */
#ifndef PML_PICTURE_RECORDING_H
#define PML_PICTURE_RECORDING_H

#include "holders/peak_picture.h"

/* A picture is active while one of its recorders records. */
void pml_picture_recording_start(struct pml_peak_picture *picture, struct pml_recorder *recorder);
void pml_picture_recording_stop(struct pml_peak_picture *picture, struct pml_recorder *recorder);
void pml_picture_recording_clear(struct pml_peak_picture *picture);
/* A frame of these groups begins or ends to count. */
void pml_picture_recording_open(uint64_t groups);
void pml_picture_recording_close(uint64_t groups);

/* A copy of what the device's picture shows; false where there is none, or memory runs out (then `failed`). The caller
 * frees the holders. */
bool pml_picture_recording_copy(struct pml_peak_picture *picture, int device, struct pml_peak *copy);

#endif
