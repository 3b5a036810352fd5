/* A kernel of one warp that stays on a GPU for a while and copies what the host tells it: between GPUs, and between a GPU and pinned memory. A copy of a few
 * bytes is through in half the time that a copy engine takes to be started and to answer. And a kernel that makes many copies at once, in the time that a copy
 * engine takes for a few. org.millrace.cuda.copy.CopyKernel is their host.
 *
 * The PTX is checked in, in a version that drivers for CUDA 11.5 and newer read; after a change:
 *
 *   nvcc -ptx -arch=compute_75 -I headers -o copy.ptx src/main/cuda/copy.cu
 *   sed "s|^[.]version .*|.version 7.5|" copy.ptx >src/main/resources/org/millrace/cuda/copy/copy.ptx
 */
#include "millrace/copy_mailbox.h"

typedef unsigned u32;
typedef unsigned long long u64;
typedef ulonglong2 Line;

enum { ALL = 0xffffffff, LANES = 32 };
/* Loads of each lane that are under way at once: all of a copy. */
enum { LOADS = 16 };
/* A look brings one line of commands, a word to a lane: one read across PCIe. */
enum { LINE_COMMANDS = 128 / sizeof(millraceCopyCommand), COMMAND_WORDS = sizeof(millraceCopyCommand) / sizeof(u64) };
/* Looks at the commands for each at the time. */
enum { LOOKS = 8 };

/* Pairs with the host's store of the command, behind which lies what is to be copied. */
static __device__ u64 load_acquire(const uint64_t *word) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ void store(uint32_t *word, u32 value) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory"); }

/* Whoever sees the value sees all that the warp has stored before. */
static __device__ void store_release(uint32_t *word, u32 value) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    store(word, value);
}

static __device__ u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Volatile: another GPU or the host has written what is read. */
template <typename T> static __device__ T get(u64 from) { return *(const volatile T *)from; }
template <typename T> static __device__ void put(u64 to, T value) { *(volatile T *)to = value; }

template <> __device__ Line get<Line>(u64 from) {
    Line value;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.x), "=l"(value.y) : "l"(from) : "memory");
    return value;
}

template <> __device__ void put<Line>(u64 to, Line value) {
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(value.x), "l"(value.y) : "memory");
}

template <typename T> static __device__ void copy(u64 to, u64 from, u32 bytes, u32 lane) {
    u32 count = bytes / sizeof(T);
    T values[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        if (i * LANES + lane < count) {
            values[i] = get<T>(from + (i * LANES + lane) * sizeof(T));
        }
    }
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        if (i * LANES + lane < count) {
            put<T>(to + (i * LANES + lane) * sizeof(T), values[i]);
        }
    }
}

/* The host asks for no more than what LOADS of each lane bring. */
static __device__ void carry_out(u64 to, u64 from, u32 bytes, u32 lane) {
    u32 alignment = (u32)to | (u32)from | bytes;
    if (bytes == (MILLRACE_COPY_VALUE | sizeof(u64))) {
        if (lane == 0) {
            put<u64>(to, from);
        }
    } else if (bytes == (MILLRACE_COPY_VALUE | sizeof(u32))) {
        if (lane == 0) {
            put<u32>(to, (u32)from);
        }
    } else if (alignment % sizeof(Line) == 0) {
        copy<Line>(to, from, bytes, lane);
    } else if (alignment % sizeof(u64) == 0) {
        copy<u64>(to, from, bytes, lane);
    } else {
        copy<unsigned char>(to, from, bytes, lane);
    }
}

static __device__ u64 whole(u64 low, u64 high) { return low << 16 >> 16 | high << 48; }

/* Carries out the commands from number on that are there, of one line; returns how many. */
static __device__ u32 look(const millraceCopyMailbox *mailbox, u32 number, u32 lane) {
    u32 first = number / LINE_COMMANDS * LINE_COMMANDS;
    u32 mine = first + lane / COMMAND_WORDS;
    bool used = lane < LINE_COMMANDS * COMMAND_WORDS && lane % COMMAND_WORDS < MILLRACE_COPY_WORDS;
    u64 word = used ? load_acquire(&mailbox->commands[mine % MILLRACE_COPY_COMMANDS].to + lane % COMMAND_WORDS) : 0;
    bool missing = used && mine - number < LINE_COMMANDS && word >> MILLRACE_COPY_NUMBER_SHIFT != (unsigned short)mine;
    u32 end = (__ffs(__ballot_sync(ALL, missing) | 1u << LINE_COMMANDS * COMMAND_WORDS) - 1) / COMMAND_WORDS; // what one lane has acquired, all have
    for (u32 i = number - first; i < end; i++) {
        u64 to = __shfl_sync(ALL, word, i * COMMAND_WORDS);
        u64 from = __shfl_sync(ALL, word, i * COMMAND_WORDS + 1);
        u64 rest = __shfl_sync(ALL, word, i * COMMAND_WORDS + 2);
        carry_out(whole(to, rest), whole(from, rest >> MILLRACE_COPY_FROM_SHIFT), (unsigned short)(rest >> MILLRACE_COPY_BYTES_SHIFT), lane);
    }
    return end - (number - first);
}

/*
 * Carries out commands from number on, in their order, until none has come for linger nanoseconds, or life nanoseconds are over. Then it says that it is
 * leaving, looks once more, and goes: a host that posts a command and then finds that nobody has said so knows that the command will be seen.
 */
extern "C" __global__ void __launch_bounds__(LANES) copy_commands(millraceCopyMailbox *mailbox, u32 number, u64 linger, u64 life) {
    u32 lane = threadIdx.x;
    u64 born = nanoseconds();
    u64 busy = born;
    u32 seen = number; // when the time was busy
    bool leaving = false;
    if (lane == 0) {
        store(&mailbox->state, MILLRACE_COPY_PRESENT);
    }
    for (u32 looks = 1;; looks++) {
        u32 found = look(mailbox, number, lane);
        if (found > 0) {
            number += found;
            __syncwarp(); // pairs the other lanes' stores with the fence of this one
            if (lane == 0) {
                store_release(&mailbox->done, number);
            }
        } else if (leaving) {
            break;
        }
        if (looks % LOOKS == 0 && !leaving) {
            u64 now = nanoseconds();
            busy = seen == number ? busy : now;
            seen = number;
            if (__shfl_sync(ALL, now - busy >= linger || now - born >= life, 0)) {
                leaving = true;
                if (lane == 0) {
                    store(&mailbox->state, MILLRACE_COPY_LEAVING);
                }
                __syncwarp();
                asm volatile("fence.sc.sys;" ::: "memory"); // pairs with the host's full fence between a command and its look at the state
            }
        }
    }
    if (lane == 0) {
        store_release(&mailbox->state, MILLRACE_COPY_GONE);
    }
}

enum { BATCH_COPIES = 128, BATCH_THREADS = 512, BATCH_PIECE = 32768 };

struct Batch {
    u64 copies[BATCH_COPIES][3]; /* to, from, bytes */
    u64 count;
};

/* By all threads of a block; the loads of one pass are under way at once. */
template <typename T> static __device__ void copy_by_block(u64 to, u64 from, u64 bytes) {
    const u32 loads = 4;
    u64 count = bytes / sizeof(T);
    for (u64 first = threadIdx.x; first < count; first += loads * blockDim.x) {
        T values[loads];
#pragma unroll
        for (u32 i = 0; i < loads; i++) {
            if (first + i * blockDim.x < count) {
                values[i] = get<T>(from + (first + i * blockDim.x) * sizeof(T));
            }
        }
#pragma unroll
        for (u32 i = 0; i < loads; i++) {
            if (first + i * blockDim.x < count) {
                put<T>(to + (first + i * blockDim.x) * sizeof(T), values[i]);
            }
        }
    }
}

/* Copies in any order, cut into pieces that are dealt out to the blocks in turn. They are there for everybody when the kernel has ended. */
extern "C" __global__ void __launch_bounds__(BATCH_THREADS) copy_batch(const Batch batch) {
    for (u32 i = 0; i < batch.count; i++) {
        u64 bytes = batch.copies[i][2];
        for (u64 piece = (blockIdx.x + gridDim.x - i % gridDim.x) % gridDim.x; piece * BATCH_PIECE < bytes; piece += gridDim.x) {
            u64 at = piece * BATCH_PIECE, to = batch.copies[i][0] + at, from = batch.copies[i][1] + at;
            u64 length = bytes - at < BATCH_PIECE ? bytes - at : BATCH_PIECE;
            u64 alignment = to | from;
            u64 width = alignment % sizeof(Line) == 0 ? sizeof(Line) : alignment % sizeof(u64) == 0 ? sizeof(u64) : 1;
            u64 body = length / width * width;
            if (width == sizeof(Line)) {
                copy_by_block<Line>(to, from, body);
            } else if (width == sizeof(u64)) {
                copy_by_block<u64>(to, from, body);
            } else {
                copy_by_block<unsigned char>(to, from, body);
            }
            copy_by_block<unsigned char>(to + body, from + body, length - body);
        }
    }
}
