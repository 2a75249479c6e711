/* models - the commands that look at one network: summary, doctor; see cli.h */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static tp_status number_flag(const cli_flag *f, long low, long high, long *value, tp_error *error)
{
  if (f->given == NULL) return TP_OK;
  char *stop = NULL;
  long v = strtol(f->given, &stop, 10);
  if (stop == f->given || *stop != '\0' || v < low || v > high)
    return cli_usage(error, "--%s: \"%s\" is not a number from %ld to %ld", f->name, f->given, low,
                     high);
  *value = v;
  return TP_OK;
}

/* What both take: a network by name, or a run. */
enum { SIZE, CLASSES, WEIGHTS, BATCH, PRECISION, FLAGS };

static tp_status open_model(cli_job *j, const cli_flag *flag, const char *weights, tp_model **model,
                            tp_error *error)
{
  long size = 192, classes = 104;
  const char *name = j->common.positional[0];
  tp_status status = number_flag(&flag[SIZE], 1, 16384, &size, error);
  if (status == TP_OK) status = number_flag(&flag[CLASSES], 0, 1000000, &classes, error);
  if (status == TP_OK) status = cli_context(&j->screen, &j->common, &j->context, error);
  if (status != TP_OK) return status;
  bool by_name = false;
  for (const char *const *n = tp_model_names(); *n != NULL; n++) by_name |= strcmp(*n, name) == 0;
  FILE *there = by_name ? NULL : fopen(name, "r");
  bool is_path = there != NULL || strchr(name, '/') != NULL; /* no network has one in its name */
  if (there != NULL) fclose(there);
  return is_path ? tp_model_open(j->context, name, model, error)
                 : tp_model_new(j->context, name, (int)size, (int)size, (int)classes, weights, 1,
                                model, error);
}

/* Those of summary: SIZE and CLASSES, then --plan and what goes with it. */
enum { PLAN = CLASSES + 1, PLAN_BATCH, PLAN_LAYERS, PLAN_NORM, PLAN_MEMORY, SUMMARY_FLAGS };

/* The table of layers, or with --plan that of memory. */
static tp_status describe(tp_model *model, const cli_flag *flag, char **text, tp_error *error)
{
  const char *norm = flag[PLAN_NORM].given != NULL ? flag[PLAN_NORM].given : "frozen";
  long batch = 32, layers = 0;
  if (flag[PLAN].given == NULL) {
    for (int i = PLAN + 1; i < SUMMARY_FLAGS; i++)
      if (flag[i].given != NULL) return cli_usage(error, "--%s goes with --plan", flag[i].name);
    return tp_model_summary(model, text, error);
  }
  if (strcmp(norm, "frozen") != 0 && strcmp(norm, "batch") != 0)
    return cli_usage(error, "--batch-norm: \"%s\" is not known; wanted frozen or batch", norm);
  tp_status status = number_flag(&flag[PLAN_BATCH], 1, 65536, &batch, error);
  if (status != TP_OK) return status;
  if (flag[PLAN_LAYERS].given != NULL && strcmp(flag[PLAN_LAYERS].given, "all") == 0)
    layers = -1;
  else
    status = number_flag(&flag[PLAN_LAYERS], 0, 100000, &layers, error);
  if (status != TP_OK) return status;
  return tp_model_plan(model, (int)batch, (int)layers, strcmp(norm, "batch") == 0,
                       flag[PLAN_MEMORY].given, text, error);
}

static const char summary_help[] =
    "tepal summary MODEL|RUN [--image-size N] [--classes N]\n\n"
    "Keras' table of layers, of a network by name (0 classes: without the head) or of a run.\n\n"
    "tepal summary MODEL|RUN --plan [--batch N] [--fine-tune-layers N|all]\n"
    "              [--batch-norm frozen|batch] [--memory BYTES]\n\n"
    "How training would lie in the CPU's memory, stage by stage; without --fine-tune-layers that\n"
    "of the head. --memory: for the plan, the weights and Adam's moments.\n\n"
    "Networks:";

tp_status cli_summary(const cli_words *words, tp_error *error)
{
  cli_flag flag[SUMMARY_FLAGS] = {[SIZE] = {.name = "image_size"},
                                  [CLASSES] = {.name = "classes"},
                                  [PLAN] = {.name = "plan", .is_switch = true},
                                  [PLAN_BATCH] = {.name = "batch"},
                                  [PLAN_LAYERS] = {.name = "fine_tune_layers"},
                                  [PLAN_NORM] = {.name = "batch_norm"},
                                  [PLAN_MEMORY] = {.name = "memory"}};
  cli_job j = {0};
  tp_model *model = NULL;
  char *text = NULL;
  tp_status status = cli_read(words, 0, NULL, flag, SUMMARY_FLAGS, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("%s", summary_help);
    cli_print_names(stdout, tp_model_names(), (int)strlen("Networks:"));
    goto out;
  }
  if (status == TP_OK && j.common.n_positional != 1)
    status = cli_usage(error, "one network or run is wanted, as: tepal summary efficientnet-b0");
  if (status == TP_OK) status = open_model(&j, flag, "none", &model, error);
  if (status == TP_OK) status = describe(model, flag, &text, error);
  if (status == TP_OK) printf("%s", text);
  tp_free(text);
  tp_model_free(model);
out:
  cli_job_end(&j);
  return status;
}

static const char doctor_help[] =
    "tepal doctor MODEL|RUN [--device NAME] [flags]\n\n"
    "Sends one batch of drawn colours through plain loops, the fast CPU kernels and the device, "
    "and\n"
    "compares what each layer gives: says who agrees, or at which layer the first difference "
    "is.\n\n"
    "  --batch N                 pictures (4)\n"
    "  --image-size N            of a network by name (192)\n"
    "  --classes N               likewise (104)\n"
    "  --weights FILE|imagenet|none\n"
    "                            likewise; none: random ones (none)\n"
    "  --precision float32|bf16  of the device (float32)\n"
    "  --device NAME             auto, tpu, gpu, cpu, or a PJRT plugin's path (auto)\n"
    "  --replicas N              devices to use; 0: all (0)\n"
    "  --threads N               0: as many as there are processors (0)\n\n"
    "Exit code 0: all agree; 4: a difference was found.\n";

tp_status cli_doctor(const cli_words *words, tp_error *error)
{
  cli_flag flag[FLAGS] = {[SIZE] = {.name = "image_size"},
                          [CLASSES] = {.name = "classes"},
                          [WEIGHTS] = {.name = "weights"},
                          [BATCH] = {.name = "batch"},
                          [PRECISION] = {.name = "precision"}};
  cli_job j = {0};
  tp_model *model = NULL;
  char *text = NULL;
  bool agree = true;
  long batch = 4;
  tp_status status = cli_read(words, 0, NULL, flag, FLAGS, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("%s", doctor_help);
    goto out;
  }
  if (status == TP_OK && j.common.n_positional != 1)
    status = cli_usage(error, "one network or run is wanted, as: tepal doctor efficientnet-b0");
  if (status == TP_OK) status = number_flag(&flag[BATCH], 1, 1024, &batch, error);
  const char *weights = flag[WEIGHTS].given != NULL ? flag[WEIGHTS].given : "none";
  const char *precision = flag[PRECISION].given != NULL ? flag[PRECISION].given : "float32";
  if (status == TP_OK) status = open_model(&j, flag, weights, &model, error);
  if (status == TP_OK) status = tp_model_check(model, (int)batch, precision, &text, &agree, error);
  if (status == TP_OK) printf("%s", text);
  if (status == TP_OK && !agree) status = TP_ERR_DEVICE; /* said already */
  tp_free(text);
  tp_model_free(model);
out:
  cli_job_end(&j);
  return status;
}
