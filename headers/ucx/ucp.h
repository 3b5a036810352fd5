/*
 * The part of UCX's protocol layer (libucp, 1.13 and newer) that Millrace calls. The library is loaded at run time.
 *
 * Values that pass to UCX with every frame (handles, requests, memory addresses) are declared as numbers of type
 * uintptr_t. The calls are the same for the library, and Java creates no objects for them. Structures have the
 * library's own layout up to the last field that is used. Field masks select the valid fields.
 */
#ifndef MILLRACE_UCX_UCP_H
#define MILLRACE_UCX_UCP_H

#include <stddef.h>
#include <stdint.h>

/* ucs_status_t; errors are negative. */
#define UCS_OK 0
#define UCS_INPROGRESS 1
#define UCS_ERR_MESSAGE_TRUNCATED -9
#define UCS_ERR_CANCELED -16
/* A returned pointer is a status if, as an unsigned number, it is at least this value. */
#define UCS_ERR_LAST -100

#define UCS_MEMORY_TYPE_HOST 0
#define UCS_THREAD_MODE_SERIALIZED 1

#define UCP_FEATURE_TAG 1

#define UCP_PARAM_FIELD_FEATURES 1
#define UCP_PARAM_FIELD_MT_WORKERS_SHARED 32

typedef struct ucp_params {
    uint64_t field_mask;
    uint64_t features;
    size_t request_size;
    uintptr_t request_init;
    uintptr_t request_cleanup;
    uint64_t tag_sender_mask;
    int mt_workers_shared;
    size_t estimated_num_eps;
    size_t estimated_num_ppn;
    uintptr_t name;
} ucp_params;

#define UCP_WORKER_PARAM_FIELD_THREAD_MODE 1

/* The fields after the first two are not used, because a worker is created without their mask bits. */
typedef struct ucp_worker_params {
    uint64_t field_mask;
    int thread_mode;
} ucp_worker_params;

#define UCP_EP_PARAM_FIELD_REMOTE_ADDRESS 1
#define UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE 2
#define UCP_EP_PARAM_FIELD_ERR_HANDLER 4

#define UCP_ERR_HANDLING_MODE_NONE 0
#define UCP_ERR_HANDLING_MODE_PEER 1

typedef struct ucp_ep_params {
    uint64_t field_mask;
    uintptr_t address;
    int err_mode;
    uintptr_t err_handler_cb;
    uintptr_t err_handler_arg;
} ucp_ep_params;

#define UCP_MEM_MAP_PARAM_FIELD_ADDRESS 1
#define UCP_MEM_MAP_PARAM_FIELD_LENGTH 2
#define UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE 16

typedef struct ucp_mem_map_params {
    uint64_t field_mask;
    uintptr_t address;
    size_t length;
    unsigned int flags;
    unsigned int prot;
    int memory_type;
} ucp_mem_map_params;

#define UCP_OP_ATTR_FIELD_FLAGS 16
#define UCP_OP_ATTR_FIELD_MEMORY_TYPE 64
#define UCP_OP_ATTR_FIELD_MEMH 256
#define UCP_OP_ATTR_FLAG_NO_IMM_CMPL 65536
#define UCP_OP_ATTR_FLAG_FAST_CMPL 131072

#define UCP_EP_CLOSE_FLAG_FORCE 1

typedef struct ucp_request_param {
    uint32_t op_attr_mask;
    uint32_t flags;
    uintptr_t request;
    uintptr_t callback;
    uint64_t datatype;
    uintptr_t user_data;
    uintptr_t reply_buffer;
    int memory_type;
    uintptr_t recv_info;
    uintptr_t memh;
} ucp_request_param;

typedef struct ucp_tag_recv_info {
    uint64_t sender_tag;
    size_t length;
} ucp_tag_recv_info;

/* The library, its configuration, a context. */
void ucp_get_version(uintptr_t major_version, uintptr_t minor_version, uintptr_t release_number);
const char *ucp_get_version_string(void);
const char *ucs_status_string(int status);
int ucp_config_read(uintptr_t env_prefix, uintptr_t filename, uintptr_t config);
int ucp_config_modify(uintptr_t config, uintptr_t name, uintptr_t value);
void ucp_config_release(uintptr_t config);
int ucp_init_version(unsigned int api_major_version, unsigned int api_minor_version, uintptr_t params,
    uintptr_t config, uintptr_t context);
void ucp_context_print_info(uintptr_t context, uintptr_t stream);

/* Memory. */
int ucp_mem_map(uintptr_t context, uintptr_t params, uintptr_t memh);
int ucp_mem_unmap(uintptr_t context, uintptr_t memh);

/* Workers and endpoints. */
int ucp_worker_create(uintptr_t context, uintptr_t params, uintptr_t worker);
void ucp_worker_destroy(uintptr_t worker);
int ucp_worker_get_address(uintptr_t worker, uintptr_t address, uintptr_t length);
void ucp_worker_release_address(uintptr_t worker, uintptr_t address);
unsigned ucp_worker_progress(uintptr_t worker);
int ucp_ep_create(uintptr_t worker, uintptr_t params, uintptr_t ep);
uintptr_t ucp_ep_close_nbx(uintptr_t ep, uintptr_t param);
uintptr_t ucp_ep_flush_nbx(uintptr_t ep, uintptr_t param);

/* Messages. The result is NULL, a request, or a status as a negative number. */
uintptr_t ucp_tag_send_nbx(uintptr_t ep, uintptr_t buffer, size_t count, uint64_t tag, uintptr_t param);
uintptr_t ucp_tag_recv_nbx(uintptr_t worker, uintptr_t buffer, size_t count, uint64_t tag, uint64_t tag_mask,
    uintptr_t param);
uintptr_t ucp_tag_probe_nb(uintptr_t worker, uint64_t tag, uint64_t tag_mask, int remove, uintptr_t info);
uintptr_t ucp_tag_msg_recv_nbx(uintptr_t worker, uintptr_t buffer, size_t count, uintptr_t message, uintptr_t param);
int ucp_request_check_status(uintptr_t request);
int ucp_tag_recv_request_test(uintptr_t request, uintptr_t info);
void ucp_request_cancel(uintptr_t worker, uintptr_t request);
void ucp_request_free(uintptr_t request);

#endif
