/* demo - `tepal demo`: drawn flowers -> train -> fine-tune -> predict -> score, offline; see cli.h
 *
 * Uses the same public calls as the other commands, and says each as the command a user would give.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { PATH = 1024 };

struct demo {
  tp_context *context;
  const char *folder;
  bool quiet;
  char train[PATH], val[PATH], test[PATH], labels[PATH], truth[PATH], run[PATH], out[PATH];
};

/* What is done next, and the command that does it; DIR in the command stands for the folder. */
static void say(const struct demo *d, const char *what, const char *command)
{
  if (d->quiet) return;
  fprintf(stderr, "\n%s\n  ", what);
  for (const char *dir; (dir = strstr(command, "DIR")) != NULL; command = dir + strlen("DIR"))
    fprintf(stderr, "%.*s%s", (int)(dir - command), command, d->folder);
  fprintf(stderr, "%s\n", command);
}

static tp_status name_files(struct demo *d, tp_error *error)
{
  struct {
    char *path;
    const char *file;
  } const all[] = {{d->train, "flowers/train/*.tfrec"},
                   {d->val, "flowers/val/*.tfrec"},
                   {d->test, "flowers/test/*.tfrec"},
                   {d->labels, "flowers/labels.txt"},
                   {d->truth, "flowers/test_labels.csv"},
                   {d->run, "run"},
                   {d->out, "submission.csv"}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (snprintf(all[i].path, PATH, "%s/%s", d->folder, all[i].file) >= PATH)
      return cli_usage(error, "--out: the folder's name is too long");
  return TP_OK;
}

/* Before anything is drawn. */
static tp_status check_seed(const char *seed, tp_error *error)
{
  tp_train_options o;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  tp_status status =
      seed != NULL ? tp_options_set(TP_OPTIONS_TRAIN, &o, "seed", seed, error) : TP_OK;
  tp_options_free(TP_OPTIONS_TRAIN, &o);
  return status;
}

static tp_status draw(struct demo *d, tp_error *error)
{
  char folder[PATH + 16];
  tp_draw_options o;
  tp_options_default(TP_OPTIONS_DRAW, &o);
  snprintf(folder, sizeof folder, "%s/flowers", d->folder);
  o.out = folder;
  o.overwrite = true;
  say(d, "1. Draw flowers, write them as TFRecords", "tepal draw --out DIR/flowers");
  return tp_draw(d->context, &o, error);
}

static tp_status train(struct demo *d, const char *seed, tp_error *error)
{
  const char *train_set[] = {d->train}, *val_set[] = {d->val};
  tp_train_options o;
  tp_train_result result;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  o.train = (tp_strings){train_set, 1};
  o.val = (tp_strings){val_set, 1};
  o.data.labels = d->labels;
  o.model = "efficientnet-lite0";
  o.run = d->run;
  o.overwrite = true;
  o.epochs = 6;
  o.fine_tune_epochs = 3;
  o.fine_tune_learning_rate = 1e-4;
  tp_status status =
      seed != NULL ? tp_options_set(TP_OPTIONS_TRAIN, &o, "seed", seed, error) : TP_OK;
  say(d, "2. Train the head on ImageNet features, then the last 20 layers",
      "tepal train --train 'DIR/flowers/train/*.tfrec' \\\n"
      "    --val 'DIR/flowers/val/*.tfrec' --labels DIR/flowers/labels.txt \\\n"
      "    --model efficientnet-lite0 --epochs 6 \\\n"
      "    --fine-tune-epochs 3 --fine-tune-learning-rate 1e-4 --run DIR/run");
  if (status == TP_OK) status = tp_train(d->context, &o, &result, error);
  tp_options_free(TP_OPTIONS_TRAIN, &o);
  return status;
}

static tp_status predict(struct demo *d, tp_error *error)
{
  const char *runs[] = {d->run}, *inputs[] = {d->test};
  tp_predict_options o;
  tp_options_default(TP_OPTIONS_PREDICT, &o);
  o.runs = (tp_strings){runs, 1};
  o.inputs = (tp_strings){inputs, 1};
  o.out = d->out;
  o.tta = "flip";
  say(d, "3. Predict the test set, the mean of two views",
      "tepal predict DIR/run --data 'DIR/flowers/test/*.tfrec' --tta flip \\\n"
      "    --out DIR/submission.csv");
  return tp_predict(d->context, &o, error);
}

static tp_status score(struct demo *d, tp_error *error)
{
  tp_evaluate_options o;
  tp_evaluation evaluation = {0};
  char *text = NULL;
  tp_options_default(TP_OPTIONS_EVALUATE, &o);
  o.predictions = d->out;
  o.truth = d->truth;
  say(d, "4. Score it against the labels that the test records do not hold",
      "tepal evaluate --predictions DIR/submission.csv \\\n"
      "    --truth DIR/flowers/test_labels.csv");
  tp_status status = tp_evaluate(d->context, &o, &evaluation, error);
  if (status == TP_OK) status = tp_evaluation_text(&evaluation, &text, error);
  if (status == TP_OK) {
    fflush(stderr);
    printf("\n%s\n%s: %lld predictions, accuracy %.4f\n", text, d->out,
           (long long)evaluation.examples, evaluation.accuracy);
  }
  tp_free(text);
  tp_evaluation_free(&evaluation);
  return status;
}

tp_status cli_demo(const cli_words *words, tp_error *error)
{
  enum { OUT, SEED };
  cli_flag flag[] = {{.name = "out"}, {.name = "seed"}};
  cli_common common;
  cli_screen screen = {0};
  struct demo d = {0};
  tp_status status = cli_read(words, 0, NULL, flag, 2, &common, error);
  if (status == TP_OK && common.help) {
    printf("tepal demo [--out DIR] [--seed N]\n\n"
           "Draws flowers, trains EfficientNet-Lite0 with ImageNet weights on them, predicts and "
           "scores,\n"
           "offline, in DIR (demo).\n");
    goto out;
  }
  if (status == TP_OK && common.n_positional > 0)
    status = cli_usage(error, "\"%s\": the folder is given with --out", common.positional[0]);
  d.quiet = common.quiet;
  d.folder = flag[OUT].given != NULL ? flag[OUT].given : "demo";
  if (status == TP_OK) status = name_files(&d, error);
  if (status == TP_OK) status = cli_context(&screen, &common, &d.context, error);
  if (status == TP_OK) status = check_seed(flag[SEED].given, error);
  if (status == TP_OK) status = draw(&d, error);
  if (status == TP_OK) status = train(&d, flag[SEED].given, error);
  if (status == TP_OK) status = predict(&d, error);
  if (status == TP_OK) status = score(&d, error);
out:
  cli_screen_end(&screen);
  cli_context_free(d.context);
  cli_common_free(&common);
  return status;
}
