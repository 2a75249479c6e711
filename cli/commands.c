/* commands - one function for each command; see cli.h */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void cli_job_end(cli_job *j)
{
  cli_screen_end(&j->screen);
  cli_context_free(j->context);
  cli_common_free(&j->common);
}

/* ---- train ---- */

static const char train_help[] =
    "tepal train --train PATTERN... [--val PATTERN...] --run DIR [flags]\n"
    "tepal train RECIPE.ini [flags]      flags change what the recipe says\n"
    "tepal train --resume DIR            goes on where a run has stopped\n\n"
    "Trains the head of a network on a frozen backbone, then (--fine-tune-epochs) its last "
    "layers.\n"
    "The run's folder gets recipe.ini, log.txt, history.csv, TensorBoard event files,\n"
    "last.safetensors, best.safetensors and best.h5.\n";

static void say_result(const cli_screen *s, const char *run, const tp_train_result *r)
{
  if (s->quiet) return;
  fprintf(stderr, "%s: %d epochs, %.0f images/s", run, r->epochs, r->images_per_s);
  if (r->best_epoch > 0) fprintf(stderr, "; best epoch %d", r->best_epoch);
  if (r->best_val_accuracy == r->best_val_accuracy)
    fprintf(stderr, ": val_accuracy %.4f, val_loss %.4f", r->best_val_accuracy, r->best_val_loss);
  fprintf(stderr, "\n");
}

/* What else stands beside --resume would have no effect. */
static tp_status check_resume(const cli_common *c, tp_error *error)
{
  const char *other = c->option != NULL ? c->option : c->n_positional > 0 ? c->positional[0] : NULL;
  if (other == NULL) return TP_OK;
  return cli_usage(error,
                   "--resume: takes everything from the run's recipe.ini; %s can't be given "
                   "with it",
                   other);
}

tp_status cli_train(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_train_options o;
  tp_train_result result;
  cli_flag resume = {.name = "resume"};
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  tp_status status = cli_read(words, TP_OPTIONS_TRAIN, &o, &resume, 1, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("%s", train_help);
    cli_print_options(stdout, TP_OPTIONS_TRAIN);
    goto out;
  }
  if (status == TP_OK)
    status = resume.given != NULL ? check_resume(&j.common, error)
                                  : cli_read_recipe(words, &o, &resume, 1, &j.common, error);
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK)
    status = resume.given != NULL ? tp_train_resume(j.context, resume.given, &result, error)
                                  : tp_train(j.context, &o, &result, error);
  if (status == TP_OK && !o.dry_run && tp_context_process(j.context) == 0)
    say_result(&j.screen, resume.given != NULL ? resume.given : o.run, &result);
out:
  tp_options_free(TP_OPTIONS_TRAIN, &o);
  cli_job_end(&j);
  return status;
}

/* ---- predict, evaluate ---- */

tp_status cli_predict(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_predict_options o;
  tp_options_default(TP_OPTIONS_PREDICT, &o);
  tp_status status = cli_read(words, TP_OPTIONS_PREDICT, &o, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("tepal predict RUN... --data PATTERN... [--out submission.csv] [flags]\n\n"
           "Predicts every record, in the records' order. Several runs are averaged.\n");
    cli_print_options(stdout, TP_OPTIONS_PREDICT);
    goto out;
  }
  o.runs = (tp_strings){j.common.positional, j.common.n_positional};
  if (status == TP_OK && o.runs.count == 0)
    status = cli_usage(error, "which run? As: tepal predict runs/first --data 'DIR/*.tfrec'");
  if (status == TP_OK && o.inputs.count == 0)
    status =
        cli_usage(error, "which data? As: tepal predict %s --data 'DIR/*.tfrec'", o.runs.item[0]);
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK) status = tp_predict(j.context, &o, error);
out:
  tp_options_free(TP_OPTIONS_PREDICT, &o);
  cli_job_end(&j);
  return status;
}

tp_status cli_evaluate(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_evaluate_options o;
  tp_evaluation evaluation = {0};
  char *text = NULL;
  tp_options_default(TP_OPTIONS_EVALUATE, &o);
  tp_status status = cli_read(words, TP_OPTIONS_EVALUATE, &o, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("tepal evaluate RUN... --data PATTERN... [flags]\n"
           "tepal evaluate --predictions CSV --truth CSV [flags]\n\n"
           "Loss, accuracy, top-5, macro F1 and a table of the classes.\n");
    cli_print_options(stdout, TP_OPTIONS_EVALUATE);
    goto out;
  }
  o.runs = (tp_strings){j.common.positional, j.common.n_positional};
  bool files = o.predictions != NULL || o.truth != NULL;
  if (status == TP_OK && !files && o.runs.count == 0)
    status = cli_usage(error, "a run with --data is wanted, or --predictions with --truth");
  if (status == TP_OK && !files && o.inputs.count == 0)
    status =
        cli_usage(error, "which data? As: tepal evaluate %s --data 'DIR/*.tfrec'", o.runs.item[0]);
  if (status == TP_OK && files && (o.runs.count > 0 || o.inputs.count > 0))
    status = cli_usage(error, "either runs with --data, or --predictions with --truth");
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK) status = tp_evaluate(j.context, &o, &evaluation, error);
  if (status == TP_OK) status = tp_evaluation_text(&evaluation, &text, error);
  if (status == TP_OK) printf("%s", text);
  tp_free(text);
  tp_evaluation_free(&evaluation);
out:
  tp_options_free(TP_OPTIONS_EVALUATE, &o);
  cli_job_end(&j);
  return status;
}

/* ---- inspect, pack, draw ---- */

tp_status cli_inspect(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_inspect_options o;
  tp_inspection found = {0};
  tp_options_default(TP_OPTIONS_INSPECT, &o);
  tp_status status = cli_read(words, TP_OPTIONS_INSPECT, &o, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("tepal inspect PATTERN... [flags]\n\n"
           "Reads everything once: counts per class and split, sizes, faults, duplicates.\n"
           "Exit code 3 when there are faults.\n");
    cli_print_options(stdout, TP_OPTIONS_INSPECT);
    goto out;
  }
  o.inputs = (tp_strings){j.common.positional, j.common.n_positional};
  if (status == TP_OK && o.inputs.count == 0)
    status = cli_usage(error, "of what? As: tepal inspect 'DIR/*/*.tfrec'");
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK) status = tp_inspect(j.context, &o, &found, error);
  if (status == TP_OK) printf("%s", found.text);
  if (status == TP_OK && found.faults > 0) {
    snprintf(error->text, sizeof error->text, "%lld fault%s in %lld records; see above",
             (long long)found.faults, found.faults == 1 ? "" : "s", (long long)found.records);
    status = TP_ERR_DATA;
  }
  tp_inspection_free(&found);
out:
  tp_options_free(TP_OPTIONS_INSPECT, &o);
  cli_job_end(&j);
  return status;
}

tp_status cli_pack(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_pack_options o;
  tp_options_default(TP_OPTIONS_PACK, &o);
  tp_status status = cli_read(words, TP_OPTIONS_PACK, &o, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("tepal pack INPUT... --out DIR [flags]\n\n"
           "Writes photos (a folder per class, or a CSV of path,label) as TFRecord shards.\n");
    cli_print_options(stdout, TP_OPTIONS_PACK);
    goto out;
  }
  o.inputs = (tp_strings){j.common.positional, j.common.n_positional};
  if (status == TP_OK && o.inputs.count == 0)
    status = cli_usage(error, "what? As: tepal pack photos --out shards");
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK) status = tp_pack(j.context, &o, error);
out:
  tp_options_free(TP_OPTIONS_PACK, &o);
  cli_job_end(&j);
  return status;
}

tp_status cli_draw(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_draw_options o;
  tp_options_default(TP_OPTIONS_DRAW, &o);
  tp_status status = cli_read(words, TP_OPTIONS_DRAW, &o, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("tepal draw --out DIR [flags]\n\n"
           "Draws flowers by seed and writes them as TFRecord shards in the Kaggle layout.\n");
    cli_print_options(stdout, TP_OPTIONS_DRAW);
    goto out;
  }
  if (status == TP_OK && j.common.n_positional > 0)
    status = cli_usage(error, "\"%s\": the folder is given with --out", j.common.positional[0]);
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  if (status == TP_OK) status = tp_draw(j.context, &o, error);
out:
  tp_options_free(TP_OPTIONS_DRAW, &o);
  cli_job_end(&j);
  return status;
}

/* ---- weights ---- */

tp_status cli_weights(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  char *path = NULL;
  tp_status status = cli_read(words, 0, NULL, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf(
        "tepal weights list          pretrained files, where they come from, what is in the cache\n"
        "tepal weights get NAME      fetches one, verifies its checksum, prints its path\n\n"
        "The cache is TEPAL_CACHE, else XDG_CACHE_HOME/tepal, else ~/.cache/tepal.\n");
    goto out;
  }
  size_t n = j.common.n_positional;
  const char **word = j.common.positional;
  bool list = n == 1 && strcmp(word[0], "list") == 0, get = n == 2 && strcmp(word[0], "get") == 0;
  if (status == TP_OK && !list && !get) status = cli_usage(error, "list, or get NAME, is wanted");
  if (status == TP_OK) status = cli_context(&j.screen, &j.common, &j.context, error);
  tp_pretrained p;
  for (size_t i = 0; status == TP_OK && list && tp_pretrained_at(j.context, i, &p); i++)
    printf("%-20s %-8s %s\n%-29s%s\n%-29schecksum %s, licence %s\n", p.name,
           p.cached ? "cached" : "-", p.file, "", p.source, "", p.checksum, p.licence);
  if (status == TP_OK && get) status = tp_pretrained_get(j.context, word[1], &path, error);
  if (path != NULL) printf("%s\n", path);
  tp_free(path);
out:
  cli_job_end(&j);
  return status;
}
