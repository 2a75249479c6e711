/* phase_options - see phase_options.h */
#include "phase_options.h"

#include <string.h>

#include "data_set.h"
#include "transfer.h"

/* ---- what can be wrong with them ---- */

tp_status tp__ranges_check(const tp__range *range, size_t count, tp_error *err)
{
  for (size_t i = 0; i < count; i++) {
    if (range[i].value >= range[i].low && range[i].value <= range[i].high) continue;
    return tp__fail(err, TP_ERR_USAGE, "%s: %.10g is out of range; wanted %.10g to %.10g",
                    range[i].name, range[i].value, range[i].low, range[i].high);
  }
  return TP_OK;
}

static tp_status check_ranges(const tp_train_options *o, tp_error *err)
{
  const tp__range range[] = {
      {"batch", o->batch, 1, 65536},
      {"epochs", o->epochs, 0, 1000000},
      {"fine_tune_epochs", o->fine_tune_epochs, 0, 1000000},
      {"fine_tune_layers", o->fine_tune_layers == -1 ? 1 : o->fine_tune_layers, 1, 100000},
      {"steps_per_epoch", o->steps_per_epoch, 0, 1e9},
      {"steps_per_execution", o->steps_per_execution, 1, 1024},
      {"validation_steps", o->validation_steps, 0, 1e9},
      {"learning_rate", o->learning_rate, 1e-30, 1e6},
      {"fine_tune_learning_rate", o->fine_tune_learning_rate, 1e-30, 1e6},
      {"fine_tune_head_factor", o->fine_tune_head_factor, 1e-6, 1e6},
      {"label_smoothing", o->label_smoothing, 0, 0.999999},
      {"dropout", o->dropout, 0, 0.999999},
      {"drop_connect", o->drop_connect, 0, 0.999999},
      {"early_stopping", o->early_stopping, 0, 1000000},
      {"early_stopping_min_delta", o->early_stopping_min_delta, 0, 1e30},
      {"plateau_patience", o->plateau_patience, 0, 1000000},
      {"plateau_factor", o->plateau_factor, 1e-9, 0.999999},
      {"plateau_min_rate", o->plateau_min_rate, 0, 1e6},
      {"plateau_cooldown", o->plateau_cooldown, 0, 1000000},
      {"checkpoint_minutes", o->checkpoint_minutes, 0, 1e6},
      {"interleave", o->interleave, 1, 4096},
      {"random_crop", o->random_crop, 0, 1},
      {"random_crop_ratio", o->random_crop_ratio, 1, 100},
      {"brightness", o->brightness, 0, 10},
      {"contrast", o->contrast, 0, 10},
      {"saturation", o->saturation, 0, 10},
      {"mixup", o->mixup, 0, 100},
      {"cutmix", o->cutmix, 0, 100},
  };
  TP__TRY(tp__ranges_check(range, sizeof range / sizeof range[0], err));
  if (!(o->rotate >= 0 && o->rotate <= 1))
    return tp__fail(err, TP_ERR_USAGE,
                    "rotate: %g: the value is a fraction of a turn, 0 to 1 (0.1 is 36 degrees)",
                    o->rotate);
  return TP_OK;
}

tp_status tp__precision_parse(const char *text, bool *bf16, tp_error *err)
{
  *bf16 = strcmp(text, "bf16") == 0;
  if (*bf16 || strcmp(text, "float32") == 0) return TP_OK;
  return tp__fail(err, TP_ERR_USAGE, "precision: \"%s\" is not known; wanted float32 or bf16",
                  text);
}

/* What the host does after flips and turns would come before them, and a crop that is turned is one
 * sampling: only what stands last can move. */
tp_status tp__augment_check(const tp_train_options *o, tp_error *err)
{
  static const char fact[] =
      "augment_on: a device flips and turns pictures after all that the host "
      "does, and %s: leave augment_on at host, or %s";
  const struct {
    const char *name;
    double value;
  } later[] = {{"brightness", o->brightness},
               {"contrast", o->contrast},
               {"saturation", o->saturation},
               {"mixup", o->mixup},
               {"cutmix", o->cutmix}};
  char does[64], remedy[64];
  for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
    if (later[i].value == 0) continue;
    snprintf(does, sizeof does, "%s belongs behind that", later[i].name);
    snprintf(remedy, sizeof remedy, "%s at 0", later[i].name);
    return tp__fail(err, TP_ERR_USAGE, fact, does, remedy);
  }
  if (o->rotate == 0) return TP_OK;
  if (o->random_crop > 0)
    return tp__fail(err, TP_ERR_USAGE, fact, "a crop is turned while it is cut out",
                    "random_crop or rotate at 0");
  if (o->rotate > 0.125)
    return tp__fail(err, TP_ERR_USAGE,
                    "augment_on: a device turns pictures by at most 0.125 of a turn (45 degrees), "
                    "rotate is %g: leave augment_on at host, or take less",
                    o->rotate);
  if (strcmp(o->rotate_fill, "wrap") == 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "augment_on: a device fills corners by reflect, constant or nearest, not by "
                    "wrap: leave augment_on at host, or take another rotate_fill");
  return TP_OK;
}

bool tp__augment_movable(const tp_train_options *o)
{
  return strcmp(o->augment_on, "host") == 0 && (o->flip || o->rotate > 0) &&
         tp__augment_check(o, NULL) == TP_OK;
}

void tp__augment_move(const tp_train_options *o, tp__image_recipe *recipe, tp__net_augment *augment)
{
  *augment = (tp__net_augment){0};
  if (strcmp(o->augment_on, "device") != 0) return;
  *augment = (tp__net_augment){.flip = recipe->flip,
                               .rotate = recipe->rotate,
                               .fill = recipe->fill,
                               .fill_value = recipe->fill_value};
  recipe->flip = false;
  recipe->rotate = 0;
}

tp_status tp__train_check(const tp_train_options *o, tp_error *err)
{
  TP__TRY(check_ranges(o, err));
  if (strcmp(o->batch_norm, "frozen") != 0 && strcmp(o->batch_norm, "batch") != 0)
    return tp__fail(err, TP_ERR_USAGE, "batch_norm: \"%s\" is not known; wanted frozen or batch",
                    o->batch_norm);
  bool bf16 = false;
  TP__TRY(tp__precision_parse(o->precision, &bf16, err));
  if (strcmp(o->augment_on, "device") == 0)
    TP__TRY(tp__augment_check(o, err));
  else if (strcmp(o->augment_on, "host") != 0)
    return tp__fail(err, TP_ERR_USAGE, "augment_on: \"%s\" is not known; wanted host or device",
                    o->augment_on);
  if (o->epochs + o->fine_tune_epochs == 0)
    return tp__fail(
        err, TP_ERR_USAGE,
        "epochs and fine_tune_epochs are both 0: there is nothing to do; set one of them");
  tp__optimizer optimizer;
  int parts = 0;
  TP__TRY(tp__optimizer_make(o, &optimizer, err));
  return tp__accumulate_parse(o->accumulate, &parts, err);
}

/* ---- a phase, and its input ---- */

tp_status tp__phase_learner(const tp_train_options *o, bool fine_tune, tp__learner_options *learner,
                            tp_error *err)
{
  *learner = (tp__learner_options){
      .last_n = fine_tune ? o->fine_tune_layers : 0,
      .batch_statistics = strcmp(o->batch_norm, "batch") == 0,
      .drop_connect = (float)o->drop_connect,
      .head_factor = fine_tune ? (float)o->fine_tune_head_factor : 1,
      .label_smoothing = (float)o->label_smoothing,
      .mixes = o->mixup > 0 || o->cutmix > 0,
      .local_statistics = !o->sync_batch_norm,
      .steps = o->steps_per_execution,
  };
  TP__TRY(tp__precision_parse(o->precision, &learner->bf16, err));
  TP__TRY(tp__optimizer_make(o, &learner->optimizer, err));
  return tp__accumulate_parse(o->accumulate, &learner->accumulate, err);
}

tp_status tp__train_input(const tp_train_options *o, int height, int width, int batch,
                          tp__pipeline_options *input, tp_error *err)
{
  *input = (tp__pipeline_options){
      .recipe = {.height = height,
                 .width = width,
                 .antialias = o->data.antialias,
                 .decode = {.exif_rotate = o->data.exif_rotate},
                 .flip = o->flip,
                 .rotate = (float)o->rotate,
                 .fill_value = (float)o->rotate_fill_value,
                 .crop = (float)o->random_crop,
                 .crop_ratio = (float)o->random_crop_ratio,
                 .colours = {(float)o->brightness, (float)o->contrast, (float)o->saturation}},
      .batch = batch,
      .training = true,
      .seed = o->seed,
      .shuffle = o->shuffle,
      .interleave = o->interleave,
      .mixup = (float)o->mixup,
      .cutmix = (float)o->cutmix,
      .steps_per_epoch = o->steps_per_epoch,
  };
  if (o->data.fast_decode) tp__image_recipe_decode_less(&input->recipe);
  TP__TRY(tp__dct_parse(o->data.dct, &input->recipe.decode.accurate_dct, err));
  return tp__fill_parse("rotate_fill", o->rotate_fill, &input->recipe.fill, err);
}
