/* compile_options - the options of a compilation in protobuf's wire format.
 *
 *   CompileOptionsProto      executable_build_options = 3
 *   ExecutableBuildOptions   num_replicas = 4, num_partitions = 5, device_assignment = 9
 *   DeviceAssignment         replica_count = 1, computation_count = 2, computation_devices = 3
 *   ComputationDevice        replica_device_ids = 1 (packed)
 *
 * (XLA: compile_options.proto, xla_data.proto.) Four messages of numbers: a schema and its
 * generated code would be longer than this. See pjrt_parts.h.
 */
#include "pjrt_parts.h"

enum { MESSAGE_MAX = 1 << 20 };

static tp_status add_varint(tp__buffer *to, uint64_t value, tp_error *err)
{
  uint8_t byte[10];
  size_t n = 0;
  do {
    byte[n] = (uint8_t)(value & 127);
    value >>= 7;
    if (value != 0) byte[n] |= 128;
    n++;
  } while (value != 0);
  return tp__buffer_add(to, byte, n, err);
}

static tp_status add_number(tp__buffer *to, unsigned field, uint64_t value, tp_error *err)
{
  TP__TRY(add_varint(to, (uint64_t)field << 3, err));
  return add_varint(to, value, err);
}

/* A message, or packed numbers, as a field of another one. Ends it. */
static tp_status add_message(tp__buffer *to, unsigned field, tp__buffer *message, tp_error *err)
{
  tp_status status = add_varint(to, (uint64_t)field << 3 | 2, err);
  if (status == TP_OK) status = add_varint(to, message->size, err);
  if (status == TP_OK) status = tp__buffer_add(to, message->data, message->size, err);
  tp__buffer_free(message);
  return status;
}

static tp_status write_assignment(int replicas, const int *id, tp__buffer *to, tp_error *err)
{
  tp__buffer ids, computation;
  tp__buffer_init(&ids, MESSAGE_MAX);
  tp__buffer_init(&computation, MESSAGE_MAX);
  tp_status status = add_number(to, 1, (uint64_t)replicas, err);
  if (status == TP_OK) status = add_number(to, 2, 1, err);
  for (int r = 0; status == TP_OK && r < replicas; r++)
    status = add_varint(&ids, (uint64_t)id[r], err);
  if (status == TP_OK) status = add_message(&computation, 1, &ids, err);
  if (status == TP_OK) status = add_message(to, 3, &computation, err);
  tp__buffer_free(&ids);
  tp__buffer_free(&computation);
  return status;
}

tp_status tp__compile_options(int replicas, const int *id, tp__buffer *into, tp_error *err)
{
  tp__buffer build, assignment;
  tp__buffer_init(into, MESSAGE_MAX);
  tp__buffer_init(&build, MESSAGE_MAX);
  tp__buffer_init(&assignment, MESSAGE_MAX);
  tp_status status = add_number(&build, 4, (uint64_t)replicas, err);
  if (status == TP_OK) status = add_number(&build, 5, 1, err);
  if (status == TP_OK && id != NULL) status = write_assignment(replicas, id, &assignment, err);
  if (status == TP_OK && id != NULL) status = add_message(&build, 9, &assignment, err);
  if (status == TP_OK) status = add_message(into, 3, &build, err);
  tp__buffer_free(&build);
  tp__buffer_free(&assignment);
  if (status != TP_OK) tp__buffer_free(into);
  return status;
}
