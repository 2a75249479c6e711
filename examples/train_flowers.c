/* train_flowers - the whole job through tepal.h: data, training, submission, score.
 *
 *   train_flowers OUT [DATA]
 *
 * DATA holds train/, val/ and test/ shards, labels.txt and test_labels.csv, as `tepal draw` makes
 * them; without it, a few flowers are drawn. OUT gets the run and submission.csv. Without ImageNet
 * weights in the cache it starts from random ones, which shows the calls but learns little.
 */
#include <stdio.h>
#include <string.h>

#include "tepal.h"

static char data[512], train[600], val[600], test[600], labels[600], truth[600], run[600], out[600];

static void print_line(void *user, tp_level level, const char *text)
{
  (void)user;
  fprintf(stderr, "%s%s\n", level == TP_LEVEL_WARNING ? "warning: " : "", text);
}

static void print_epoch(void *user, const tp_progress *p)
{
  (void)user;
  if (p->done && strcmp(p->stage, "train") == 0)
    fprintf(stderr, "epoch %d of %d: loss %.3f, validation accuracy %.3f, %.0f images/s\n",
            p->epoch, p->epochs, p->loss, p->val_accuracy, p->images_per_s);
}

static tp_status draw(tp_context *context, tp_error *error)
{
  tp_draw_options o;
  tp_options_default(TP_OPTIONS_DRAW, &o);
  o.out = data;
  o.species = 4;
  o.train = 12;
  o.val = o.test = 4;
  o.size = 96;
  o.overwrite = true;
  return tp_draw(context, &o, error);
}

static bool weights_are_cached(tp_context *context, const char *name)
{
  tp_pretrained p;
  for (size_t i = 0; tp_pretrained_at(context, i, &p); i++)
    if (strcmp(p.name, name) == 0) return p.cached;
  return false;
}

static tp_status learn(tp_context *context, tp_error *error)
{
  tp_train_options o;
  tp_train_result result;
  tp_options_default(TP_OPTIONS_TRAIN, &o); /* the defaults are those of the Kaggle notebook */
  o.train = (tp_strings){(const char *[]){train}, 1};
  o.val = (tp_strings){(const char *[]){val}, 1};
  o.data.labels = labels;
  o.model = "efficientnet-lite0";
  o.weights = weights_are_cached(context, o.model) ? "imagenet" : "none";
  o.image_size = "96";
  o.batch = 8;
  o.epochs = 3;           /* of the head, on a frozen backbone */
  o.fine_tune_epochs = 1; /* then of the last 20 layers */
  o.run = run;
  o.overwrite = true;
  tp_status status = tp_train(context, &o, &result, error);
  if (status == TP_OK)
    printf("trained %d epochs; the best, %d, has validation accuracy %.3f\n", result.epochs,
           result.best_epoch, result.best_val_accuracy);
  return status;
}

static tp_status submit_and_score(tp_context *context, tp_error *error)
{
  tp_predict_options p;
  tp_options_default(TP_OPTIONS_PREDICT, &p);
  p.runs = (tp_strings){(const char *[]){run}, 1};
  p.inputs = (tp_strings){(const char *[]){test}, 1};
  p.out = out;
  tp_status status = tp_predict(context, &p, error);
  if (status != TP_OK) return status;
  tp_evaluation e = {0};
  tp_evaluate_options o;
  tp_options_default(TP_OPTIONS_EVALUATE, &o);
  o.predictions = out;
  o.truth = truth;
  status = tp_evaluate(context, &o, &e, error);
  if (status == TP_OK)
    printf("%s: %lld answers, accuracy %.3f\n", out, (long long)e.examples, e.accuracy);
  tp_evaluation_free(&e);
  return status;
}

int main(int argc, char **word)
{
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: train_flowers OUT [DATA]\n");
    return TP_ERR_USAGE;
  }
  snprintf(data, sizeof data, argc == 3 ? "%s" : "%s/flowers", word[argc - 1]);
  snprintf(train, sizeof train, "%s/train/*.tfrec", data);
  snprintf(val, sizeof val, "%s/val/*.tfrec", data);
  snprintf(test, sizeof test, "%s/test/*.tfrec", data);
  snprintf(labels, sizeof labels, "%s/labels.txt", data);
  snprintf(truth, sizeof truth, "%s/test_labels.csv", data);
  snprintf(run, sizeof run, "%s/run", word[1]);
  snprintf(out, sizeof out, "%s/submission.csv", word[1]);
  tp_error error = {0};
  tp_context *context = NULL;
  tp_context_options options = {.log = print_line, .progress = print_epoch};
  tp_status status = tp_context_new(&options, &context, &error);
  if (status == TP_OK && argc == 2) status = draw(context, &error);
  if (status == TP_OK) status = learn(context, &error);
  if (status == TP_OK) status = submit_and_score(context, &error);
  if (status != TP_OK) fprintf(stderr, "%s: %s\n", tp_status_text(status), error.text);
  tp_context_free(context);
  return (int)status; /* the statuses are the exit codes of the command, too */
}
