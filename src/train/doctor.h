/* doctor - do the fast kernels and the device compute what the plain loops do?
 *
 *   one batch ──> plain loops, fast CPU kernels, device ──> the first layer whose output differs
 *
 * Every layer's output is fetched from all of them and compared with the plain loops', relative to
 * the layer's largest value. A fault in one kernel shows at the layer where it enters, not as a
 * wrong accuracy hours later.
 */
#ifndef TP_DOCTOR_H
#define TP_DOCTOR_H

#include "backend/backend.h"
#include "base/job.h"
#include "model/net.h"

typedef struct tp__doctor_options {
  const tp__model_spec *spec;
  const tp__tensors *weights;
  int batch;
  bool bf16; /* of the device; a CPU that has both is looked at in both */
} tp__doctor_options;

/* device: NULL or the CPU's: only the CPU is looked at. agree: nothing differs by more than
 * rounding does. Adds what people should read to text. */
tp_status tp__doctor(const tp__job *job, tp__backend *device, const tp__doctor_options *options,
                     tp__buffer *text, bool *agree, tp_error *err) TP_CHECKED;

#endif
