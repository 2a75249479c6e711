/* plan_json - a plan for programs; see plan_report.h
 *
 *   fits         true or false: everything
 *   network      {model, height, width, classes, precision, batch (of a replica), replicas}
 *   machine      {chip, topology, devices, hosts, memory, usable (bytes of a device), compiler}
 *   data         {examples?, val_examples?, pixels: "uint8" or "float32", pictures_per_s? (measured
 *                here), threads?}
 *   phases       [{name: "head" or "fine-tuning", epochs, trainable, features_kept, programs:
 *                [{name: "features", "step" or "validation", fits, why?, rows (of a replica),
 * parts, need, arguments, input, outputs, temporary, code (bytes), flops?, bytes_accessed?,
 *                  compile_seconds, cached, at_best_s?, arithmetic_s?, memory_s?, compiler_s?,
 *                  largest?, too_many? (rows of a replica)}],
 *                pictures_per_s_needed?, steps?, seconds?, host_limits}]
 *
 * What is not known is left out. cJSON's functions pass NULL on, and what could not be made for
 * lack of memory is noticed by the flag.
 */
#include <cjson/cJSON.h>
#include <string.h>

#include "plan_report.h"

/* Where there is memory for it; the flag says if not. */
struct json {
  bool good;
};

static void add_number(struct json *j, cJSON *to, const char *name, double value)
{
  if (cJSON_AddNumberToObject(to, name, value) == NULL) j->good = false;
}

static void add_known(struct json *j, cJSON *to, const char *name, double value)
{
  if (value > 0) add_number(j, to, name, value);
}

static void add_text(struct json *j, cJSON *to, const char *name, const char *value)
{
  if (cJSON_AddStringToObject(to, name, value) == NULL) j->good = false;
}

static void add_flag(struct json *j, cJSON *to, const char *name, bool value)
{
  if (cJSON_AddBoolToObject(to, name, value) == NULL) j->good = false;
}

static cJSON *add_object(struct json *j, cJSON *to, const char *name)
{
  cJSON *object = cJSON_AddObjectToObject(to, name);
  if (object == NULL) j->good = false;
  return object;
}

static cJSON *add_item(struct json *j, cJSON *array)
{
  cJSON *item = cJSON_CreateObject();
  if (item == NULL || !cJSON_AddItemToArray(array, item)) {
    cJSON_Delete(item);
    item = NULL;
    j->good = false;
  }
  return item;
}

static void add_program(struct json *j, cJSON *array, const char *name, const tp__planned *p,
                        const tp__bound *b)
{
  const tp__executable_info *i = &p->verdict.info;
  if (p->rows == 0) return;
  cJSON *to = add_item(j, array);
  add_text(j, to, "name", name);
  add_flag(j, to, "fits", p->verdict.fits);
  if (!p->verdict.fits) add_text(j, to, "why", p->verdict.why);
  add_number(j, to, "rows", (double)p->rows);
  add_number(j, to, "parts", p->parts);
  add_known(j, to, "need", (double)p->verdict.need);
  add_known(j, to, "arguments", (double)i->argument_bytes);
  add_number(j, to, "input", (double)p->input_bytes);
  add_known(j, to, "outputs", (double)i->output_bytes);
  add_known(j, to, "temporary", (double)i->temporary_bytes);
  add_known(j, to, "code", (double)i->code_bytes);
  add_known(j, to, "flops", i->flops);
  add_known(j, to, "bytes_accessed", i->bytes_accessed);
  add_number(j, to, "compile_seconds", p->verdict.seconds);
  add_flag(j, to, "cached", p->verdict.cached);
  add_known(j, to, "at_best_s", b->seconds);
  add_known(j, to, "arithmetic_s", b->arithmetic);
  add_known(j, to, "memory_s", b->traffic);
  add_known(j, to, "compiler_s", b->compiler);
  add_known(j, to, "largest", (double)p->largest);
  add_known(j, to, "too_many", (double)p->too_many);
}

static void add_phase(struct json *j, cJSON *array, const tp__plan *plan, const tp__phase_plan *p)
{
  cJSON *to = add_item(j, array);
  add_text(j, to, "name", p->fine_tune ? "fine-tuning" : "head");
  add_number(j, to, "epochs", p->epochs);
  add_number(j, to, "trainable", (double)p->trainable);
  add_flag(j, to, "features_kept", p->kept);
  cJSON *programs = cJSON_AddArrayToObject(to, "programs");
  add_program(j, programs, "features", &p->features, &p->features_bound);
  add_program(j, programs, "step", &p->step, &p->step_bound);
  add_program(j, programs, "validation", &p->scores, &p->scores_bound);
  add_known(j, to, "pictures_per_s_needed", p->needs);
  add_known(j, to, "steps", (double)plan->steps);
  add_known(j, to, "seconds", p->seconds);
  add_flag(j, to, "host_limits", p->host_limits);
}

static void add_head(struct json *j, cJSON *root, const tp__plan *plan)
{
  const tp__target *t = &plan->options->target;
  add_flag(j, root, "fits", plan->fits);
  cJSON *network = add_object(j, root, "network");
  add_text(j, network, "model", plan->model);
  add_number(j, network, "height", plan->height);
  add_number(j, network, "width", plan->width);
  add_number(j, network, "classes", plan->classes);
  add_text(j, network, "precision", plan->options->train->precision);
  add_number(j, network, "batch", plan->batch);
  add_number(j, network, "replicas", plan->replicas);
  cJSON *machine = add_object(j, root, "machine");
  add_text(j, machine, "chip", t->chip->title);
  add_text(j, machine, "topology", t->topology);
  add_number(j, machine, "devices", plan->machine.devices);
  add_number(j, machine, "hosts", plan->machine.hosts);
  add_number(j, machine, "memory", (double)t->chip->memory);
  add_number(j, machine, "usable", (double)t->chip->usable);
  add_text(j, machine, "compiler", plan->machine.version);
  cJSON *data = add_object(j, root, "data");
  add_known(j, data, "examples", (double)plan->examples);
  add_known(j, data, "val_examples", (double)plan->val_examples);
  add_text(j, data, "pixels", plan->bytes ? "uint8" : "float32");
  if (plan->measured) add_number(j, data, "pictures_per_s", plan->host);
  if (plan->measured) add_number(j, data, "threads", plan->threads);
}

tp_status tp__plan_json(const tp__plan *plan, tp__buffer *text, tp_error *err)
{
  struct json j = {.good = true};
  cJSON *root = cJSON_CreateObject();
  add_head(&j, root, plan);
  cJSON *phases = cJSON_AddArrayToObject(root, "phases");
  for (size_t i = 0; i < plan->n_phases; i++) add_phase(&j, phases, plan, &plan->phase[i]);
  char *printed = j.good && phases != NULL ? cJSON_Print(root) : NULL;
  tp_status status =
      printed != NULL ? tp__buffer_printf(text, err, "%s\n", printed) : tp__no_memory(err, 4096);
  cJSON_free(printed);
  cJSON_Delete(root);
  return status;
}
