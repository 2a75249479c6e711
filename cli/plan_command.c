/* plan_command - `tepal plan`; see cli.h */
#include <stdlib.h>

#include "cli.h"

static const char plan_help[] =
    "tepal plan RECIPE.ini --topology NAME [flags]\n"
    "tepal plan --topology NAME --classes N [--examples N] [flags]     without data\n\n"
    "Compiles a training's very programs for a TPU or GPU that is not here, with its real "
    "compiler,\n"
    "and says for each phase: memory of each core, the largest batch that fits, work and time at\n"
    "best, steps and minutes, the pictures per second that are needed and that this machine "
    "makes.\n"
    "Takes all flags of tepal train, and:\n\n"
    "  --topology NAME         TPUs: v3-8 or v3:2x2, v5e-8, v5p:2x2x1, v6e-8 ...\n"
    "                          GPUs: h200, h100, a100, l4, t4; a100:4 for four\n"
    "  --classes N             without data and labels' file: how many\n"
    "  --examples N            without data: pictures to train on; --val-examples N likewise\n"
    "  --quick                 the largest batch is not looked for\n"
    "  --measure SECONDS       how long this machine makes batches of the data (3)\n"
    "  --patience SECONDS      that one compilation may take (1800)\n"
    "  --compiler FILE         libtpu.so or a CUDA plugin; otherwise it is looked for\n"
    "  --json                  one JSON object\n"
    "  --replicas N            devices to use; 0: all (0)\n"
    "  --threads N             that make batches; 0: as many as there are processors (0)\n"
    "  --quiet                 warnings and errors only\n\n"
    "The compiler of TPUs comes with: pip install libtpu; of GPUs: pip install jax-cuda13-pjrt.\n"
    "Neither needs its device for this. Answers are kept: asking again takes no time.\n\n"
    "Exit code 0: it fits; 4: it does not, or does not compile.\n";

enum { TOPOLOGY, COMPILER, CLASSES, EXAMPLES, VAL_EXAMPLES, MEASURE, PATIENCE, QUICK, JSON, FLAGS };

static tp_status read_number(const cli_flag *f, double *value, tp_error *error)
{
  char *end = NULL;
  if (f->given == NULL) return TP_OK;
  double v = strtod(f->given, &end);
  if (end == f->given || *end != '\0' || !(v >= 0 && v <= 1e15))
    return cli_usage(error, "%s: \"%s\" is not a number", f->name, f->given);
  *value = v;
  return TP_OK;
}

static tp_status read_plan(const cli_flag *flag, tp_plan_options *plan, tp_error *error)
{
  double classes = 0, examples = 0, val_examples = 0;
  *plan = (tp_plan_options){.topology = flag[TOPOLOGY].given,
                            .compiler = flag[COMPILER].given,
                            .largest = flag[QUICK].given == NULL,
                            .measure = 3,
                            .patience = 1800,
                            .json = flag[JSON].given != NULL};
  tp_status status = read_number(&flag[CLASSES], &classes, error);
  if (status == TP_OK) status = read_number(&flag[EXAMPLES], &examples, error);
  if (status == TP_OK) status = read_number(&flag[VAL_EXAMPLES], &val_examples, error);
  if (status == TP_OK) status = read_number(&flag[MEASURE], &plan->measure, error);
  if (status == TP_OK) status = read_number(&flag[PATIENCE], &plan->patience, error);
  plan->classes = (int)(classes < 1e9 ? classes : 1e9);
  plan->examples = (int64_t)examples;
  plan->val_examples = (int64_t)val_examples;
  return status;
}

tp_status cli_plan(const cli_words *words, tp_error *error)
{
  cli_flag flag[FLAGS] = {[TOPOLOGY] = {.name = "topology"},
                          [COMPILER] = {.name = "compiler"},
                          [CLASSES] = {.name = "classes"},
                          [EXAMPLES] = {.name = "examples"},
                          [VAL_EXAMPLES] = {.name = "val_examples"},
                          [MEASURE] = {.name = "measure"},
                          [PATIENCE] = {.name = "patience"},
                          [QUICK] = {.name = "quick", .is_switch = true},
                          [JSON] = {.name = "json", .is_switch = true}};
  cli_job j = {0};
  tp_train_options o;
  tp_plan_options plan;
  char *text = NULL;
  bool fits = false;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  tp_status status = cli_read(words, TP_OPTIONS_TRAIN, &o, flag, FLAGS, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("%s", plan_help);
    goto out;
  }
  if (status == TP_OK) status = cli_read_recipe(words, &o, flag, FLAGS, &j.common, error);
  if (status == TP_OK && j.common.device != NULL)
    status = cli_usage(error, "--device: a plan uses none; --topology says which it is for");
  if (status == TP_OK) status = read_plan(flag, &plan, error);
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK) status = tp_plan(j.context, &o, &plan, &text, &fits, error);
  if (status == TP_OK) printf("%s", text);
  if (status == TP_OK && !fits) status = TP_ERR_DEVICE; /* said already */
  tp_free(text);
out:
  tp_options_free(TP_OPTIONS_TRAIN, &o);
  cli_job_end(&j);
  return status;
}
