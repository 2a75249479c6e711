/* device - what a step on a PJRT plugin costs besides the device: host time of submitting it, and
 * how long the device has nothing to do between steps.
 *
 *   bench_device PLUGIN.so REPLICAS STEPS [NETWORK SIDE BATCH]
 *
 * Prints one JSON line: seconds until the first step's end, microseconds of the host for each
 * submit, the share of time in which nothing was submitted to the device. A tiny network makes the
 * host's part visible.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/pjrt/pjrt.h"
#include "train/learner.h"

static tp_status run(int argc, char **argv, tp_error *err)
{
  tp__pjrt_options o = {.plugin = argv[1], .kind = TP__CLASS_CPU, .replicas = atoi(argv[2])};
  o.cache = getenv("TEPAL_PROGRAMS");
  int steps = atoi(argv[3]), side = argc > 5 ? atoi(argv[5]) : 32;
  tp__learner_options lo = {
      .spec = {.name = argc > 4 ? argv[4] : "efficientnet-b0", .classes = 4},
      .whole = true,
      .bytes = true,
      .optimizer = {.kind = TP__OPTIMIZER_ADAM, .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f},
      .batch = (argc > 6 ? atoi(argv[6]) : 1) * o.replicas};
  lo.spec.height = lo.spec.width = side;
  if (argc <= 4) lo.spec.width_coefficient = lo.spec.depth_coefficient = 0.25f;
  tp__backend *backend = NULL;
  tp__net *net = NULL;
  tp__tensors weights = {0};
  tp__learner *learner = NULL;
  double start = tp__now();
  TP__TRY(tp__backend_pjrt(&o, &backend, err));
  TP__TRY(tp__net_build(&lo.spec, false, &net, err));
  TP__TRY(tp__net_init(net, 1, &weights, err));
  TP__TRY(tp__learner_new(backend, &lo, &weights, NULL, &learner, err));
  size_t batch = (size_t)lo.batch, picture = (size_t)side * (size_t)side * 3;
  float *pixels = calloc(batch * picture, sizeof *pixels), *out = calloc(batch * 10, sizeof *out);
  int32_t *labels = calloc(batch, sizeof *labels);
  uint32_t *keys = calloc(batch * 2, sizeof *keys);
  if (!pixels || !out || !labels || !keys) return tp__no_memory(err, batch * picture);
  tp__batch b = {.n = lo.batch, .pixels = pixels, .labels = labels, .keys = keys};
  tp__pending *before = NULL, *now = NULL;
  double first = 0, submitting = 0, since = 0;
  for (int s = 0; s < steps; s++) {
    double at = tp__now();
    float *place = out + (s % 2) * 5 * lo.batch;
    TP__TRY(tp__learner_step(learner, &b, NULL, 1e-3f, s, place, place + lo.batch, &now, err));
    if (s > 1) submitting += tp__now() - at;
    TP__TRY(tp__learner_wait(learner, before, err));
    before = now;
    if (s == 1) {
      first = tp__now() - start;
      (void)backend->idle(backend, true);
      since = tp__now();
    }
  }
  double idle = backend->idle(backend, false), all = tp__now() - since;
  TP__TRY(tp__learner_wait(learner, before, err));
  printf("{\"name\": \"device_step\", \"replicas\": %d, \"first_step_s\": %.3f, \"step_us\": %.0f, "
         "\"submit_us\": %.0f, \"idle_share\": %.4f}\n",
         o.replicas, first, 1e6 * all / (steps - 2), 1e6 * submitting / (steps - 2), idle / all);
  tp__learner_free(learner);
  tp__tensors_free(&weights);
  tp__net_free(net);
  backend->free(backend);
  free(pixels);
  free(out);
  free(labels);
  free(keys);
  return TP_OK;
}

int main(int argc, char **argv)
{
  tp_error err = {0};
  if (argc < 4 || atoi(argv[2]) < 1 || atoi(argv[3]) < 3) {
    fprintf(stderr, "bench_device PLUGIN.so REPLICAS STEPS [NETWORK SIDE BATCH]\n");
    return 2;
  }
  tp_status status = run(argc, argv, &err);
  if (status != TP_OK) fprintf(stderr, "bench_device: %s\n", err.text);
  return status;
}
