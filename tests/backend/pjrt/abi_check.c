/* Our declarations of the PJRT interface against the published header, field by field, when this
 * is compiled: test_abi.py does it, with the headers of several versions. Not linked.
 *
 *   BLOCK   the struct's fields end where theirs end
 *   GROWN   newer headers have more fields; they must fit into our room of zeros
 *   FIELD   offset and size
 *   SLOT    place in the table of functions
 *   VALUE   of an enumeration
 */
#include "backend/pjrt/pjrt_abi.h"
#include "pjrt_c_api.h"

#define CHECK(what, text)    _Static_assert(what, text)
#define SIZE_OF(type, field) sizeof(((type *)0)->field)
#define BLOCK(our, their)    CHECK(offsetof(our, room) == their##_STRUCT_SIZE, #their)
#define GROWN(our, their)                                                                          \
  CHECK(offsetof(our, room) <= their##_STRUCT_SIZE && sizeof(our) >= their##_STRUCT_SIZE, #their)
#define PLACE(our, field, their, name)                                                             \
  CHECK(offsetof(our, field) == offsetof(their, name), #their "." #name)
#define FIELD(our, field, their, name)                                                             \
  PLACE(our, field, their, name);                                                                  \
  CHECK(SIZE_OF(our, field) == SIZE_OF(their, name), "size of " #their "." #name)
#define HEAD(our, their)                                                                           \
  FIELD(our, struct_size, their, struct_size);                                                     \
  FIELD(our, extension, their, extension_start)
#define SLOT(field, their) FIELD(tp__pjrt_api, field, PJRT_Api, their)
#define VALUE(our, their)  CHECK((int)our == (int)their, #their)

#ifdef BREAK /* shows that a difference is noticed */
CHECK(offsetof(tp__pjrt_execute, loaded) == offsetof(PJRT_LoadedExecutable_Execute_Args, options),
      "wrong on purpose");
#endif

/* ---- version and table ---- */
CHECK(PJRT_API_MAJOR == TP__PJRT_MAJOR, "major version");
FIELD(tp__pjrt_api, struct_size, PJRT_Api, struct_size);
FIELD(tp__pjrt_api, extension, PJRT_Api, extension_start);
FIELD(tp__pjrt_api, version.major, PJRT_Api, pjrt_api_version.major_version);
FIELD(tp__pjrt_api, version.minor, PJRT_Api, pjrt_api_version.minor_version);
SLOT(error_destroy, PJRT_Error_Destroy);
SLOT(error_message, PJRT_Error_Message);
SLOT(error_code, PJRT_Error_GetCode);
SLOT(plugin_initialize, PJRT_Plugin_Initialize);
SLOT(plugin_attributes, PJRT_Plugin_Attributes);
SLOT(event_destroy, PJRT_Event_Destroy);
SLOT(event_is_ready, PJRT_Event_IsReady);
SLOT(event_await, PJRT_Event_Await);
SLOT(client_create, PJRT_Client_Create);
SLOT(client_destroy, PJRT_Client_Destroy);
SLOT(client_platform_name, PJRT_Client_PlatformName);
SLOT(client_process_index, PJRT_Client_ProcessIndex);
SLOT(client_platform_version, PJRT_Client_PlatformVersion);
SLOT(client_devices, PJRT_Client_Devices);
SLOT(client_addressable_devices, PJRT_Client_AddressableDevices);
SLOT(client_compile, PJRT_Client_Compile);
SLOT(buffer_from_host, PJRT_Client_BufferFromHostBuffer);
SLOT(description_id, PJRT_DeviceDescription_Id);
SLOT(description_process_index, PJRT_DeviceDescription_ProcessIndex);
SLOT(description_kind, PJRT_DeviceDescription_Kind);
SLOT(device_get_description, PJRT_Device_GetDescription);
SLOT(device_memory_stats, PJRT_Device_MemoryStats);
SLOT(executable_destroy, PJRT_Executable_Destroy);
SLOT(executable_num_outputs, PJRT_Executable_NumOutputs);
SLOT(executable_code_size, PJRT_Executable_SizeOfGeneratedCodeInBytes);
SLOT(executable_cost, PJRT_Executable_GetCostAnalysis);
SLOT(executable_serialize, PJRT_Executable_Serialize);
SLOT(loaded_destroy, PJRT_LoadedExecutable_Destroy);
SLOT(loaded_get_executable, PJRT_LoadedExecutable_GetExecutable);
SLOT(loaded_execute, PJRT_LoadedExecutable_Execute);
SLOT(deserialize, PJRT_Executable_DeserializeAndLoad);
SLOT(buffer_destroy, PJRT_Buffer_Destroy);
SLOT(buffer_is_deleted, PJRT_Buffer_IsDeleted);
SLOT(buffer_to_host, PJRT_Buffer_ToHostBuffer);
SLOT(topology_create, PJRT_TopologyDescription_Create);
SLOT(topology_destroy, PJRT_TopologyDescription_Destroy);
SLOT(topology_platform_name, PJRT_TopologyDescription_PlatformName);
SLOT(topology_platform_version, PJRT_TopologyDescription_PlatformVersion);
SLOT(topology_descriptions, PJRT_TopologyDescription_GetDeviceDescriptions);
SLOT(compile, PJRT_Compile);
SLOT(executable_memory, PJRT_Executable_GetCompiledMemoryStats);
CHECK(sizeof(tp__pjrt_api) <= PJRT_Api_STRUCT_SIZE, "the table is longer than theirs");

/* ---- errors ---- */
VALUE(TP__PJRT_UNKNOWN, PJRT_Error_Code_UNKNOWN);
VALUE(TP__PJRT_INVALID_ARGUMENT, PJRT_Error_Code_INVALID_ARGUMENT);
VALUE(TP__PJRT_DEADLINE_EXCEEDED, PJRT_Error_Code_DEADLINE_EXCEEDED);
VALUE(TP__PJRT_NOT_FOUND, PJRT_Error_Code_NOT_FOUND);
VALUE(TP__PJRT_ALREADY_EXISTS, PJRT_Error_Code_ALREADY_EXISTS);
VALUE(TP__PJRT_RESOURCE_EXHAUSTED, PJRT_Error_Code_RESOURCE_EXHAUSTED);
VALUE(TP__PJRT_FAILED_PRECONDITION, PJRT_Error_Code_FAILED_PRECONDITION);
VALUE(TP__PJRT_ABORTED, PJRT_Error_Code_ABORTED);
VALUE(TP__PJRT_UNIMPLEMENTED, PJRT_Error_Code_UNIMPLEMENTED);
VALUE(TP__PJRT_INTERNAL, PJRT_Error_Code_INTERNAL);
VALUE(TP__PJRT_UNAVAILABLE, PJRT_Error_Code_UNAVAILABLE);

HEAD(tp__pjrt_error_destroy, PJRT_Error_Destroy_Args);
FIELD(tp__pjrt_error_destroy, error, PJRT_Error_Destroy_Args, error);
BLOCK(tp__pjrt_error_destroy, PJRT_Error_Destroy_Args);

HEAD(tp__pjrt_error_message, PJRT_Error_Message_Args);
FIELD(tp__pjrt_error_message, error, PJRT_Error_Message_Args, error);
FIELD(tp__pjrt_error_message, message, PJRT_Error_Message_Args, message);
FIELD(tp__pjrt_error_message, message_size, PJRT_Error_Message_Args, message_size);
BLOCK(tp__pjrt_error_message, PJRT_Error_Message_Args);

HEAD(tp__pjrt_error_code, PJRT_Error_GetCode_Args);
FIELD(tp__pjrt_error_code, error, PJRT_Error_GetCode_Args, error);
FIELD(tp__pjrt_error_code, code, PJRT_Error_GetCode_Args, code);
BLOCK(tp__pjrt_error_code, PJRT_Error_GetCode_Args);

/* ---- named values ---- */
VALUE(TP__PJRT_TEXT, PJRT_NamedValue_kString);
VALUE(TP__PJRT_INT64, PJRT_NamedValue_kInt64);
VALUE(TP__PJRT_INT64_LIST, PJRT_NamedValue_kInt64List);
VALUE(TP__PJRT_FLOAT, PJRT_NamedValue_kFloat);
VALUE(TP__PJRT_BOOL, PJRT_NamedValue_kBool);
HEAD(tp__pjrt_named_value, PJRT_NamedValue);
FIELD(tp__pjrt_named_value, name, PJRT_NamedValue, name);
FIELD(tp__pjrt_named_value, name_size, PJRT_NamedValue, name_size);
FIELD(tp__pjrt_named_value, type, PJRT_NamedValue, type);
FIELD(tp__pjrt_named_value, value.text, PJRT_NamedValue, string_value);
FIELD(tp__pjrt_named_value, value.int64, PJRT_NamedValue, int64_value);
FIELD(tp__pjrt_named_value, value.int64_list, PJRT_NamedValue, int64_array_value);
FIELD(tp__pjrt_named_value, value.number, PJRT_NamedValue, float_value);
FIELD(tp__pjrt_named_value, value.boolean, PJRT_NamedValue, bool_value);
FIELD(tp__pjrt_named_value, value_size, PJRT_NamedValue, value_size);
CHECK(sizeof(tp__pjrt_named_value) == sizeof(PJRT_NamedValue), "arrays of named values");

/* ---- plugin, events ---- */
HEAD(tp__pjrt_plugin_initialize, PJRT_Plugin_Initialize_Args);
BLOCK(tp__pjrt_plugin_initialize, PJRT_Plugin_Initialize_Args);

HEAD(tp__pjrt_plugin_attributes, PJRT_Plugin_Attributes_Args);
FIELD(tp__pjrt_plugin_attributes, attributes, PJRT_Plugin_Attributes_Args, attributes);
FIELD(tp__pjrt_plugin_attributes, num_attributes, PJRT_Plugin_Attributes_Args, num_attributes);
BLOCK(tp__pjrt_plugin_attributes, PJRT_Plugin_Attributes_Args);

HEAD(tp__pjrt_event_args, PJRT_Event_Destroy_Args);
FIELD(tp__pjrt_event_args, event, PJRT_Event_Destroy_Args, event);
BLOCK(tp__pjrt_event_args, PJRT_Event_Destroy_Args);
FIELD(tp__pjrt_event_args, event, PJRT_Event_Await_Args, event);
BLOCK(tp__pjrt_event_args, PJRT_Event_Await_Args);
HEAD(tp__pjrt_event_is_ready, PJRT_Event_IsReady_Args);
FIELD(tp__pjrt_event_is_ready, event, PJRT_Event_IsReady_Args, event);
FIELD(tp__pjrt_event_is_ready, is_ready, PJRT_Event_IsReady_Args, is_ready);
BLOCK(tp__pjrt_event_is_ready, PJRT_Event_IsReady_Args);

/* ---- key-value store ---- */
HEAD(tp__pjrt_kv_get, PJRT_KeyValueGetCallback_Args);
FIELD(tp__pjrt_kv_get, key, PJRT_KeyValueGetCallback_Args, key);
FIELD(tp__pjrt_kv_get, key_size, PJRT_KeyValueGetCallback_Args, key_size);
FIELD(tp__pjrt_kv_get, timeout_ms, PJRT_KeyValueGetCallback_Args, timeout_in_ms);
FIELD(tp__pjrt_kv_get, callback_error, PJRT_KeyValueGetCallback_Args, callback_error);
FIELD(tp__pjrt_kv_get, user, PJRT_KeyValueGetCallback_Args, user_arg);
FIELD(tp__pjrt_kv_get, value, PJRT_KeyValueGetCallback_Args, value);
FIELD(tp__pjrt_kv_get, value_size, PJRT_KeyValueGetCallback_Args, value_size);
FIELD(tp__pjrt_kv_get, value_free, PJRT_KeyValueGetCallback_Args, value_deleter_callback);

HEAD(tp__pjrt_kv_try_get, PJRT_KeyValueTryGetCallback_Args);
FIELD(tp__pjrt_kv_try_get, key, PJRT_KeyValueTryGetCallback_Args, key);
FIELD(tp__pjrt_kv_try_get, key_size, PJRT_KeyValueTryGetCallback_Args, key_size);
FIELD(tp__pjrt_kv_try_get, callback_error, PJRT_KeyValueTryGetCallback_Args, callback_error);
FIELD(tp__pjrt_kv_try_get, user, PJRT_KeyValueTryGetCallback_Args, user_arg);
FIELD(tp__pjrt_kv_try_get, value, PJRT_KeyValueTryGetCallback_Args, value);
FIELD(tp__pjrt_kv_try_get, value_size, PJRT_KeyValueTryGetCallback_Args, value_size);
FIELD(tp__pjrt_kv_try_get, value_free, PJRT_KeyValueTryGetCallback_Args, value_deleter_callback);

HEAD(tp__pjrt_kv_put, PJRT_KeyValuePutCallback_Args);
FIELD(tp__pjrt_kv_put, key, PJRT_KeyValuePutCallback_Args, key);
FIELD(tp__pjrt_kv_put, key_size, PJRT_KeyValuePutCallback_Args, key_size);
FIELD(tp__pjrt_kv_put, value, PJRT_KeyValuePutCallback_Args, value);
FIELD(tp__pjrt_kv_put, value_size, PJRT_KeyValuePutCallback_Args, value_size);
FIELD(tp__pjrt_kv_put, callback_error, PJRT_KeyValuePutCallback_Args, callback_error);
FIELD(tp__pjrt_kv_put, user, PJRT_KeyValuePutCallback_Args, user_arg);

/* ---- client and devices ---- */
HEAD(tp__pjrt_client_create, PJRT_Client_Create_Args);
FIELD(tp__pjrt_client_create, options, PJRT_Client_Create_Args, create_options);
FIELD(tp__pjrt_client_create, num_options, PJRT_Client_Create_Args, num_options);
FIELD(tp__pjrt_client_create, kv_get, PJRT_Client_Create_Args, kv_get_callback);
FIELD(tp__pjrt_client_create, kv_get_user, PJRT_Client_Create_Args, kv_get_user_arg);
FIELD(tp__pjrt_client_create, kv_put, PJRT_Client_Create_Args, kv_put_callback);
FIELD(tp__pjrt_client_create, kv_put_user, PJRT_Client_Create_Args, kv_put_user_arg);
FIELD(tp__pjrt_client_create, client, PJRT_Client_Create_Args, client);
FIELD(tp__pjrt_client_create, kv_try_get, PJRT_Client_Create_Args, kv_try_get_callback);
FIELD(tp__pjrt_client_create, kv_try_get_user, PJRT_Client_Create_Args, kv_try_get_user_arg);
BLOCK(tp__pjrt_client_create, PJRT_Client_Create_Args);

HEAD(tp__pjrt_client_destroy, PJRT_Client_Destroy_Args);
FIELD(tp__pjrt_client_destroy, client, PJRT_Client_Destroy_Args, client);
BLOCK(tp__pjrt_client_destroy, PJRT_Client_Destroy_Args);

HEAD(tp__pjrt_client_text, PJRT_Client_PlatformName_Args);
FIELD(tp__pjrt_client_text, client, PJRT_Client_PlatformName_Args, client);
FIELD(tp__pjrt_client_text, text, PJRT_Client_PlatformName_Args, platform_name);
FIELD(tp__pjrt_client_text, text_size, PJRT_Client_PlatformName_Args, platform_name_size);
BLOCK(tp__pjrt_client_text, PJRT_Client_PlatformName_Args);
FIELD(tp__pjrt_client_text, client, PJRT_Client_PlatformVersion_Args, client);
FIELD(tp__pjrt_client_text, text, PJRT_Client_PlatformVersion_Args, platform_version);
FIELD(tp__pjrt_client_text, text_size, PJRT_Client_PlatformVersion_Args, platform_version_size);
BLOCK(tp__pjrt_client_text, PJRT_Client_PlatformVersion_Args);

HEAD(tp__pjrt_client_process_index, PJRT_Client_ProcessIndex_Args);
FIELD(tp__pjrt_client_process_index, client, PJRT_Client_ProcessIndex_Args, client);
FIELD(tp__pjrt_client_process_index, process_index, PJRT_Client_ProcessIndex_Args, process_index);
BLOCK(tp__pjrt_client_process_index, PJRT_Client_ProcessIndex_Args);

HEAD(tp__pjrt_client_devices, PJRT_Client_Devices_Args);
FIELD(tp__pjrt_client_devices, client, PJRT_Client_Devices_Args, client);
FIELD(tp__pjrt_client_devices, devices, PJRT_Client_Devices_Args, devices);
FIELD(tp__pjrt_client_devices, num_devices, PJRT_Client_Devices_Args, num_devices);
BLOCK(tp__pjrt_client_devices, PJRT_Client_Devices_Args);
FIELD(tp__pjrt_client_devices, client, PJRT_Client_AddressableDevices_Args, client);
FIELD(tp__pjrt_client_devices, devices, PJRT_Client_AddressableDevices_Args, addressable_devices);
FIELD(tp__pjrt_client_devices, num_devices, PJRT_Client_AddressableDevices_Args,
      num_addressable_devices);
BLOCK(tp__pjrt_client_devices, PJRT_Client_AddressableDevices_Args);

HEAD(tp__pjrt_device_get_description, PJRT_Device_GetDescription_Args);
FIELD(tp__pjrt_device_get_description, device, PJRT_Device_GetDescription_Args, device);
FIELD(tp__pjrt_device_get_description, description, PJRT_Device_GetDescription_Args,
      device_description);
BLOCK(tp__pjrt_device_get_description, PJRT_Device_GetDescription_Args);

HEAD(tp__pjrt_description_number, PJRT_DeviceDescription_Id_Args);
FIELD(tp__pjrt_description_number, description, PJRT_DeviceDescription_Id_Args, device_description);
FIELD(tp__pjrt_description_number, number, PJRT_DeviceDescription_Id_Args, id);
BLOCK(tp__pjrt_description_number, PJRT_DeviceDescription_Id_Args);
FIELD(tp__pjrt_description_number, description, PJRT_DeviceDescription_ProcessIndex_Args,
      device_description);
FIELD(tp__pjrt_description_number, number, PJRT_DeviceDescription_ProcessIndex_Args, process_index);
BLOCK(tp__pjrt_description_number, PJRT_DeviceDescription_ProcessIndex_Args);

HEAD(tp__pjrt_description_kind, PJRT_DeviceDescription_Kind_Args);
FIELD(tp__pjrt_description_kind, description, PJRT_DeviceDescription_Kind_Args, device_description);
FIELD(tp__pjrt_description_kind, kind, PJRT_DeviceDescription_Kind_Args, device_kind);
FIELD(tp__pjrt_description_kind, kind_size, PJRT_DeviceDescription_Kind_Args, device_kind_size);
BLOCK(tp__pjrt_description_kind, PJRT_DeviceDescription_Kind_Args);

HEAD(tp__pjrt_device_memory_stats, PJRT_Device_MemoryStats_Args);
FIELD(tp__pjrt_device_memory_stats, device, PJRT_Device_MemoryStats_Args, device);
#define STATS(name) FIELD(tp__pjrt_device_memory_stats, name, PJRT_Device_MemoryStats_Args, name)
STATS(bytes_in_use);
STATS(peak_bytes_in_use);
STATS(peak_bytes_in_use_is_set);
STATS(num_allocs);
STATS(num_allocs_is_set);
STATS(largest_alloc_size);
STATS(largest_alloc_size_is_set);
STATS(bytes_limit);
STATS(bytes_limit_is_set);
STATS(bytes_reserved);
STATS(bytes_reserved_is_set);
STATS(peak_bytes_reserved);
STATS(peak_bytes_reserved_is_set);
STATS(bytes_reservable_limit);
STATS(bytes_reservable_limit_is_set);
STATS(largest_free_block_bytes);
STATS(largest_free_block_bytes_is_set);
STATS(pool_bytes);
STATS(pool_bytes_is_set);
STATS(peak_pool_bytes);
STATS(peak_pool_bytes_is_set);
BLOCK(tp__pjrt_device_memory_stats, PJRT_Device_MemoryStats_Args);

/* ---- compiling ---- */
HEAD(tp__pjrt_program, PJRT_Program);
FIELD(tp__pjrt_program, code, PJRT_Program, code);
FIELD(tp__pjrt_program, code_size, PJRT_Program, code_size);
FIELD(tp__pjrt_program, format, PJRT_Program, format);
FIELD(tp__pjrt_program, format_size, PJRT_Program, format_size);
BLOCK(tp__pjrt_program, PJRT_Program);

HEAD(tp__pjrt_client_compile, PJRT_Client_Compile_Args);
FIELD(tp__pjrt_client_compile, client, PJRT_Client_Compile_Args, client);
FIELD(tp__pjrt_client_compile, program, PJRT_Client_Compile_Args, program);
FIELD(tp__pjrt_client_compile, compile_options, PJRT_Client_Compile_Args, compile_options);
FIELD(tp__pjrt_client_compile, compile_options_size, PJRT_Client_Compile_Args,
      compile_options_size);
FIELD(tp__pjrt_client_compile, loaded, PJRT_Client_Compile_Args, executable);
BLOCK(tp__pjrt_client_compile, PJRT_Client_Compile_Args);

HEAD(tp__pjrt_topology_create, PJRT_TopologyDescription_Create_Args);
FIELD(tp__pjrt_topology_create, name, PJRT_TopologyDescription_Create_Args, topology_name);
FIELD(tp__pjrt_topology_create, name_size, PJRT_TopologyDescription_Create_Args,
      topology_name_size);
FIELD(tp__pjrt_topology_create, options, PJRT_TopologyDescription_Create_Args, create_options);
FIELD(tp__pjrt_topology_create, num_options, PJRT_TopologyDescription_Create_Args, num_options);
FIELD(tp__pjrt_topology_create, topology, PJRT_TopologyDescription_Create_Args, topology);
BLOCK(tp__pjrt_topology_create, PJRT_TopologyDescription_Create_Args);

HEAD(tp__pjrt_topology_destroy, PJRT_TopologyDescription_Destroy_Args);
FIELD(tp__pjrt_topology_destroy, topology, PJRT_TopologyDescription_Destroy_Args, topology);
BLOCK(tp__pjrt_topology_destroy, PJRT_TopologyDescription_Destroy_Args);

HEAD(tp__pjrt_topology_text, PJRT_TopologyDescription_PlatformName_Args);
FIELD(tp__pjrt_topology_text, topology, PJRT_TopologyDescription_PlatformName_Args, topology);
FIELD(tp__pjrt_topology_text, text, PJRT_TopologyDescription_PlatformName_Args, platform_name);
FIELD(tp__pjrt_topology_text, text_size, PJRT_TopologyDescription_PlatformName_Args,
      platform_name_size);
BLOCK(tp__pjrt_topology_text, PJRT_TopologyDescription_PlatformName_Args);
FIELD(tp__pjrt_topology_text, text, PJRT_TopologyDescription_PlatformVersion_Args,
      platform_version);
FIELD(tp__pjrt_topology_text, text_size, PJRT_TopologyDescription_PlatformVersion_Args,
      platform_version_size);
BLOCK(tp__pjrt_topology_text, PJRT_TopologyDescription_PlatformVersion_Args);

HEAD(tp__pjrt_topology_descriptions, PJRT_TopologyDescription_GetDeviceDescriptions_Args);
FIELD(tp__pjrt_topology_descriptions, topology, PJRT_TopologyDescription_GetDeviceDescriptions_Args,
      topology);
FIELD(tp__pjrt_topology_descriptions, descriptions,
      PJRT_TopologyDescription_GetDeviceDescriptions_Args, descriptions);
FIELD(tp__pjrt_topology_descriptions, num_descriptions,
      PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions);
BLOCK(tp__pjrt_topology_descriptions, PJRT_TopologyDescription_GetDeviceDescriptions_Args);

HEAD(tp__pjrt_compile, PJRT_Compile_Args);
FIELD(tp__pjrt_compile, topology, PJRT_Compile_Args, topology);
FIELD(tp__pjrt_compile, program, PJRT_Compile_Args, program);
FIELD(tp__pjrt_compile, compile_options, PJRT_Compile_Args, compile_options);
FIELD(tp__pjrt_compile, compile_options_size, PJRT_Compile_Args, compile_options_size);
FIELD(tp__pjrt_compile, client, PJRT_Compile_Args, client);
FIELD(tp__pjrt_compile, executable, PJRT_Compile_Args, executable);
BLOCK(tp__pjrt_compile, PJRT_Compile_Args);

/* ---- what was compiled ---- */
HEAD(tp__pjrt_executable_destroy, PJRT_Executable_Destroy_Args);
FIELD(tp__pjrt_executable_destroy, executable, PJRT_Executable_Destroy_Args, executable);
BLOCK(tp__pjrt_executable_destroy, PJRT_Executable_Destroy_Args);

HEAD(tp__pjrt_executable_num_outputs, PJRT_Executable_NumOutputs_Args);
FIELD(tp__pjrt_executable_num_outputs, executable, PJRT_Executable_NumOutputs_Args, executable);
FIELD(tp__pjrt_executable_num_outputs, num_outputs, PJRT_Executable_NumOutputs_Args, num_outputs);
BLOCK(tp__pjrt_executable_num_outputs, PJRT_Executable_NumOutputs_Args);

HEAD(tp__pjrt_executable_code_size, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args);
FIELD(tp__pjrt_executable_code_size, executable, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args,
      executable);
FIELD(tp__pjrt_executable_code_size, size_in_bytes, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args,
      size_in_bytes);
BLOCK(tp__pjrt_executable_code_size, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args);

HEAD(tp__pjrt_executable_cost, PJRT_Executable_GetCostAnalysis_Args);
FIELD(tp__pjrt_executable_cost, executable, PJRT_Executable_GetCostAnalysis_Args, executable);
FIELD(tp__pjrt_executable_cost, num_properties, PJRT_Executable_GetCostAnalysis_Args,
      num_properties);
FIELD(tp__pjrt_executable_cost, properties, PJRT_Executable_GetCostAnalysis_Args, properties);
BLOCK(tp__pjrt_executable_cost, PJRT_Executable_GetCostAnalysis_Args);

#define MEMORY(field, name)                                                                        \
  FIELD(tp__pjrt_executable_memory, field, PJRT_Executable_GetCompiledMemoryStats_Args, name)
HEAD(tp__pjrt_executable_memory, PJRT_Executable_GetCompiledMemoryStats_Args);
MEMORY(executable, executable);
MEMORY(generated_code_size, generated_code_size_in_bytes);
MEMORY(argument_size, argument_size_in_bytes);
MEMORY(output_size, output_size_in_bytes);
MEMORY(alias_size, alias_size_in_bytes);
MEMORY(temp_size, temp_size_in_bytes);
MEMORY(host_generated_code_size, host_generated_code_size_in_bytes);
MEMORY(host_argument_size, host_argument_size_in_bytes);
MEMORY(host_output_size, host_output_size_in_bytes);
MEMORY(host_alias_size, host_alias_size_in_bytes);
MEMORY(host_temp_size, host_temp_size_in_bytes);
GROWN(tp__pjrt_executable_memory, PJRT_Executable_GetCompiledMemoryStats_Args);

HEAD(tp__pjrt_executable_serialize, PJRT_Executable_Serialize_Args);
FIELD(tp__pjrt_executable_serialize, executable, PJRT_Executable_Serialize_Args, executable);
FIELD(tp__pjrt_executable_serialize, bytes, PJRT_Executable_Serialize_Args, serialized_bytes);
FIELD(tp__pjrt_executable_serialize, bytes_size, PJRT_Executable_Serialize_Args,
      serialized_bytes_size);
FIELD(tp__pjrt_executable_serialize, serialized, PJRT_Executable_Serialize_Args,
      serialized_executable);
FIELD(tp__pjrt_executable_serialize, serialized_free, PJRT_Executable_Serialize_Args,
      serialized_executable_deleter);
BLOCK(tp__pjrt_executable_serialize, PJRT_Executable_Serialize_Args);

HEAD(tp__pjrt_deserialize, PJRT_Executable_DeserializeAndLoad_Args);
FIELD(tp__pjrt_deserialize, client, PJRT_Executable_DeserializeAndLoad_Args, client);
FIELD(tp__pjrt_deserialize, bytes, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable);
FIELD(tp__pjrt_deserialize, bytes_size, PJRT_Executable_DeserializeAndLoad_Args,
      serialized_executable_size);
FIELD(tp__pjrt_deserialize, loaded, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
FIELD(tp__pjrt_deserialize, compile_options, PJRT_Executable_DeserializeAndLoad_Args,
      overridden_serialized_compile_options);
FIELD(tp__pjrt_deserialize, compile_options_size, PJRT_Executable_DeserializeAndLoad_Args,
      overridden_serialized_compile_options_size);
GROWN(tp__pjrt_deserialize, PJRT_Executable_DeserializeAndLoad_Args);

HEAD(tp__pjrt_loaded_destroy, PJRT_LoadedExecutable_Destroy_Args);
FIELD(tp__pjrt_loaded_destroy, loaded, PJRT_LoadedExecutable_Destroy_Args, executable);
BLOCK(tp__pjrt_loaded_destroy, PJRT_LoadedExecutable_Destroy_Args);

HEAD(tp__pjrt_loaded_get_executable, PJRT_LoadedExecutable_GetExecutable_Args);
FIELD(tp__pjrt_loaded_get_executable, loaded, PJRT_LoadedExecutable_GetExecutable_Args,
      loaded_executable);
FIELD(tp__pjrt_loaded_get_executable, executable, PJRT_LoadedExecutable_GetExecutable_Args,
      executable);
BLOCK(tp__pjrt_loaded_get_executable, PJRT_LoadedExecutable_GetExecutable_Args);

/* ---- running ---- */
#define OPTION(name) FIELD(tp__pjrt_execute_options, name, PJRT_ExecuteOptions, name)
HEAD(tp__pjrt_execute_options, PJRT_ExecuteOptions);
OPTION(send_callbacks);
OPTION(recv_callbacks);
OPTION(num_send_ops);
OPTION(num_recv_ops);
OPTION(launch_id);
OPTION(non_donatable_input_indices);
OPTION(num_non_donatable_input_indices);
GROWN(tp__pjrt_execute_options, PJRT_ExecuteOptions);

HEAD(tp__pjrt_execute, PJRT_LoadedExecutable_Execute_Args);
FIELD(tp__pjrt_execute, loaded, PJRT_LoadedExecutable_Execute_Args, executable);
FIELD(tp__pjrt_execute, options, PJRT_LoadedExecutable_Execute_Args, options);
FIELD(tp__pjrt_execute, argument_lists, PJRT_LoadedExecutable_Execute_Args, argument_lists);
FIELD(tp__pjrt_execute, num_devices, PJRT_LoadedExecutable_Execute_Args, num_devices);
FIELD(tp__pjrt_execute, num_args, PJRT_LoadedExecutable_Execute_Args, num_args);
FIELD(tp__pjrt_execute, output_lists, PJRT_LoadedExecutable_Execute_Args, output_lists);
FIELD(tp__pjrt_execute, device_complete, PJRT_LoadedExecutable_Execute_Args,
      device_complete_events);
FIELD(tp__pjrt_execute, execute_device, PJRT_LoadedExecutable_Execute_Args, execute_device);
BLOCK(tp__pjrt_execute, PJRT_LoadedExecutable_Execute_Args);

/* ---- buffers ---- */
VALUE(TP__PJRT_S32, PJRT_Buffer_Type_S32);
VALUE(TP__PJRT_S64, PJRT_Buffer_Type_S64);
VALUE(TP__PJRT_U8, PJRT_Buffer_Type_U8);
VALUE(TP__PJRT_U32, PJRT_Buffer_Type_U32);
VALUE(TP__PJRT_F16, PJRT_Buffer_Type_F16);
VALUE(TP__PJRT_F32, PJRT_Buffer_Type_F32);
VALUE(TP__PJRT_F64, PJRT_Buffer_Type_F64);
VALUE(TP__PJRT_BF16, PJRT_Buffer_Type_BF16);
VALUE(TP__PJRT_ONLY_DURING_CALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
VALUE(TP__PJRT_UNTIL_TRANSFER_DONE, PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes);

#define FROM_HOST(field, name)                                                                     \
  FIELD(tp__pjrt_buffer_from_host, field, PJRT_Client_BufferFromHostBuffer_Args, name)
HEAD(tp__pjrt_buffer_from_host, PJRT_Client_BufferFromHostBuffer_Args);
FROM_HOST(client, client);
FROM_HOST(data, data);
FROM_HOST(type, type);
FROM_HOST(dims, dims);
FROM_HOST(num_dims, num_dims);
FROM_HOST(byte_strides, byte_strides);
FROM_HOST(num_byte_strides, num_byte_strides);
FROM_HOST(semantics, host_buffer_semantics);
FROM_HOST(device, device);
FROM_HOST(memory, memory);
FROM_HOST(device_layout, device_layout);
FROM_HOST(done_with_data, done_with_host_buffer);
FROM_HOST(buffer, buffer);
BLOCK(tp__pjrt_buffer_from_host, PJRT_Client_BufferFromHostBuffer_Args);

HEAD(tp__pjrt_buffer_destroy, PJRT_Buffer_Destroy_Args);
FIELD(tp__pjrt_buffer_destroy, buffer, PJRT_Buffer_Destroy_Args, buffer);
BLOCK(tp__pjrt_buffer_destroy, PJRT_Buffer_Destroy_Args);

HEAD(tp__pjrt_buffer_is_deleted, PJRT_Buffer_IsDeleted_Args);
FIELD(tp__pjrt_buffer_is_deleted, buffer, PJRT_Buffer_IsDeleted_Args, buffer);
FIELD(tp__pjrt_buffer_is_deleted, is_deleted, PJRT_Buffer_IsDeleted_Args, is_deleted);
BLOCK(tp__pjrt_buffer_is_deleted, PJRT_Buffer_IsDeleted_Args);

HEAD(tp__pjrt_buffer_to_host, PJRT_Buffer_ToHostBuffer_Args);
FIELD(tp__pjrt_buffer_to_host, buffer, PJRT_Buffer_ToHostBuffer_Args, src);
FIELD(tp__pjrt_buffer_to_host, host_layout, PJRT_Buffer_ToHostBuffer_Args, host_layout);
FIELD(tp__pjrt_buffer_to_host, data, PJRT_Buffer_ToHostBuffer_Args, dst);
FIELD(tp__pjrt_buffer_to_host, data_size, PJRT_Buffer_ToHostBuffer_Args, dst_size);
FIELD(tp__pjrt_buffer_to_host, event, PJRT_Buffer_ToHostBuffer_Args, event);
BLOCK(tp__pjrt_buffer_to_host, PJRT_Buffer_ToHostBuffer_Args);
