/* A kernel that stays on a GPU for a while and copies what the host tells it: between GPUs, and between a GPU and pinned memory. Its first block is one warp. It
 * reads the commands, which lie in the host's memory, so that nobody else polls across PCIe, makes the shortest copies itself, in half the time that a copy
 * engine takes to be started and to answer, and gives the others to workers, a block each, which make many at once where a copy engine makes one behind the
 * other. org.millrace.cuda.CopyKernel is its host.
 *
 * The PTX is checked in, in a version that drivers for CUDA 11.5 and newer read; after a change:
 *
 *   nvcc -ptx -arch=compute_75 -I headers -o copy.ptx src/main/cuda/copy.cu
 *   sed "s|^[.]version .*|.version 7.5|" copy.ptx >src/main/resources/org/millrace/cuda/copy.ptx
 */
#include "millrace/copy_mailbox.h"

typedef unsigned u32;
typedef unsigned long long u64;
typedef ulonglong2 Line;

enum { ALL = 0xffffffff, LANES = 32 };
/* Loads of each lane that are under way at once: all of a copy. */
enum { LOADS = 4 };
/* A look brings a command to each lane: reads across PCIe that are under way at once. */
enum { LOOK_COMMANDS = LANES };
/* Looks at the commands for each at the time. */
enum { LOOKS = 8 };
/* Copies that a worker makes before it says so, while others wait for it already: a fence takes as long as a copy. */
enum { COPIES_AT_ONCE = 8 };
/* A launch whose workers find no room within this time gives up, so that nobody waits behind it: the host launches again. */
enum { ARRIVAL_NANOS = 100000 };
/* Few registers too: a worker is to find room beside a block of a program that takes every multiprocessor. */
enum { WORKER_THREADS = 128, BLOCKS_BY_REGISTERS = 8 };

/* A copy that a worker is to make. It is there when its number is: how many this worker was given before. */
struct Work {
    u64 to;
    u64 from;
    u64 bytes;
    u32 number;
    u32 ordered; // it must not be seen before those that this worker was given earlier
};

/* As many launches may wait for room, each in a stream of its own: one may stand behind a kernel of the program's that does not end without copies. */
enum { STREAMS = 8 };

/* In the GPU's memory, zeroed once. The host knows its size (CopyKernel). */
struct Workers {
    Work works[MILLRACE_COPY_WORKERS][MILLRACE_COPY_GIVEN];
    u32 given[MILLRACE_COPY_WORKERS]; // by the first block
    u32 taken[MILLRACE_COPY_WORKERS]; // by each worker, while it is not there
    u32 owned;                        // 1 while a launch serves the host, or its workers are still there
    u32 ended;                        // workers of that launch
    u32 arrived[STREAMS];             // workers, of all launches of a stream
    u32 chosen[STREAMS];              // which launch of a stream has found out whether it serves the host, and, lowest bit, whether it does
    u32 left[STREAMS];                // which launch of a stream gives its workers no more
};

/* Half a command. Pairs with the host's releases of its words, behind which lies what is to be copied. A fence behind a relaxed load would wait for all that
 * the warp has stored, which takes as long as the load. */
static __device__ Line load_half(const uint64_t *words) {
    Line value;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.x), "=l"(value.y) : "l"(words) : "memory");
    return value;
}

static __device__ bool is_missing(Line half, u32 number) {
    return half.x >> MILLRACE_COPY_NUMBER_SHIFT != (unsigned short)number || half.y >> MILLRACE_COPY_NUMBER_SHIFT != (unsigned short)number;
}

/* Half an even or odd one of the commands: the first 16 lie in one half a lane, the others in a second. By all lanes. */
static __device__ Line half_of(Line first, Line second, u32 lane, u32 odd) {
    u32 from = lane * 2 % LANES + odd;
    u64 x = __shfl_sync(ALL, first.x, from), y = __shfl_sync(ALL, first.y, from);
    u64 upper_x = __shfl_sync(ALL, second.x, from), upper_y = __shfl_sync(ALL, second.y, from);
    Line half;
    half.x = lane < LANES / 2 ? x : upper_x;
    half.y = lane < LANES / 2 ? y : upper_y;
    return half;
}

static __device__ u32 load_acquire_host(const uint32_t *word) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ u32 load_acquire_here(const u32 *word) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ void store_release_here(u32 *word, u32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

/* What was copied before is there for all before what is copied behind it. */
static __device__ void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

static __device__ void store(uint32_t *word, u32 value) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory"); }

/* Whoever sees the value sees all that the warp has stored before. */
static __device__ void store_release(uint32_t *word, u32 value) {
    fence();
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

/* The host asks for no more than what LOADS of each lane bring. A number of 4 or 8 bytes is never seen in part: whoever polls for it need not look at it twice. */
static __device__ void carry_out(u64 to, u64 from, u32 bytes, u32 lane) {
    u32 alignment = (u32)to | (u32)from | bytes;
    if (alignment % sizeof(Line) == 0) {
        copy<Line>(to, from, bytes, lane);
    } else if (alignment % sizeof(u64) == 0) {
        copy<u64>(to, from, bytes, lane);
    } else if (alignment % sizeof(u32) == 0) {
        copy<u32>(to, from, bytes, lane);
    } else {
        copy<unsigned char>(to, from, bytes, lane);
    }
}

static __device__ u64 whole(u64 low, u64 high) { return low << 16 >> 16 | high << 48; }

/* A command, in the lane that gives it to a worker. */
struct Command {
    u64 to;
    u64 from;
    u32 bytes;
    u32 worker; // from 1; 0: the warp copies, or there is none
    bool ordered;
};

/*
 * Lanes from first to before end give their commands to workers, behind what the warp has copied; those of one worker in the order of the lanes. The host gives a
 * worker no more than there is room for. By all lanes.
 */
static __device__ void give(Workers *workers, Command command, u32 first, u32 end, u32 lane) {
    u32 worker = lane >= first && lane < end ? command.worker : 0;
    u32 same = __match_any_sync(ALL, worker);
    u32 before = same & (1u << lane) - 1;
    volatile u32 *given = &workers->given[worker > 0 ? worker - 1 : 0];
    u32 number = *given + __popc(before) + 1;
    __syncwarp(); // all have read it
    if (worker > 0) {
        Work *work = &workers->works[worker - 1][number % MILLRACE_COPY_GIVEN];
        work->to = command.to;
        work->from = command.from;
        work->bytes = command.bytes;
        work->ordered = command.ordered;
        if (before == 0) {
            *given = number + __popc(same) - 1;
        }
        store_release_here(&work->number, number);
    }
    __syncwarp();
}

/* What a look found: how many commands, and whether the warp has made copies itself. */
struct Look {
    u32 found;
    bool copied;
};

/* Carries out, or gives away, the commands from number on that are there, of those that one look brings. */
static __device__ Look look(const millraceCopyMailbox *mailbox, Workers *workers, u32 number, u32 lane) {
    u32 mine = number + lane / 2;
    Line first = load_half(&mailbox->commands[mine % MILLRACE_COPY_COMMANDS].to + lane % 2 * 2);
    u32 lost = __ballot_sync(ALL, is_missing(first, mine));
    Look none = {0, false};
    if (lost & 3) {
        return none;
    }
    Line second = first;
    if (lost == 0) { // many come: the others are read only then
        mine += LANES / 2;
        second = load_half(&mailbox->commands[mine % MILLRACE_COPY_COMMANDS].to + lane % 2 * 2);
    }
    __syncwarp(); // what one lane has acquired, others read
    u32 more = lost == 0 ? __ballot_sync(ALL, is_missing(second, mine)) : ALL;
    u32 end = lost != 0 ? (__ffs(lost) - 1) / 2 : more != 0 ? LANES / 2 + (__ffs(more) - 1) / 2 : LOOK_COMMANDS;
    Line addresses = half_of(first, second, lane, 0);
    Line rest = half_of(first, second, lane, 1);
    Command command;
    command.to = whole(addresses.x, rest.x);
    command.from = whole(addresses.y, rest.x >> MILLRACE_COPY_FROM_SHIFT);
    command.bytes = (u32)rest.y;
    command.worker = lane < end ? (unsigned char)(rest.y >> MILLRACE_COPY_WORKER_SHIFT) : 0;
    command.ordered = rest.y >> MILLRACE_COPY_ORDERED_SHIFT & 1;
    u32 own = __ballot_sync(ALL, lane < end && command.worker == 0);
    bool copied = false;
    for (u32 i = 0; i < end;) {
        if (copied) { // each lane's stores, for whoever sees what comes behind them
            fence();
            __syncwarp();
        }
        copied = own >> i & 1;
        if (copied) {
            carry_out(__shfl_sync(ALL, command.to, i), __shfl_sync(ALL, command.from, i), __shfl_sync(ALL, command.bytes, i), lane);
            i++;
        } else {
            u32 next = own >> i ? i + __ffs(own >> i) - 1 : end;
            give(workers, command, i, next, lane);
            i = next;
        }
    }
    Look all = {end, own != 0};
    return all;
}

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

/* As many as are whole elements; returns the rest, which lies behind them. */
template <typename T> static __device__ u64 copy_whole(u64 *to, u64 *from, u64 bytes) {
    u64 body = bytes / sizeof(T) * sizeof(T);
    copy_by_block<T>(*to, *from, body);
    *to += body;
    *from += body;
    return bytes - body;
}

/* A worker. It leaves when the first block gives no more, and it has made all that it was given. */
static __device__ void make_copies(millraceCopyMailbox *mailbox, Workers *workers, u32 me, u32 stream, u32 launch) {
    __shared__ Work shared;
    if (threadIdx.x == 0) {
        atomicAdd(&workers->arrived[stream], 1);
        u32 chosen;
        do {
            chosen = load_acquire_here(&workers->chosen[stream]);
        } while (chosen >> 1 != launch);
        shared.number = chosen & 1;
    }
    __syncthreads();
    if (!shared.number) {
        return;
    }
    __syncthreads(); // shared may be written again
    u32 number = workers->taken[me];
    u32 told = number; // to the host
    bool more = false; // the next but one was there too
    while (true) {
        if (threadIdx.x == 0) {
            const Work *work = &workers->works[me][(number + 1) % MILLRACE_COPY_GIVEN];
            bool there = load_acquire_here(&work->number) == number + 1;
            while (!there) {
                bool last = load_acquire_here(&workers->left[stream]) == launch; // what was given before is there
                there = load_acquire_here(&work->number) == number + 1;
                if (last) {
                    break;
                }
            }
            shared.number = there;
            if (there) {
                shared.to = work->to;
                shared.from = work->from;
                shared.bytes = work->bytes;
                more = ((const volatile Work *)workers->works[me])[(number + 2) % MILLRACE_COPY_GIVEN].number == number + 2;
                if (work->ordered && told != number) {
                    fence();
                }
            }
        }
        __syncthreads();
        if (!shared.number) {
            break;
        }
        u64 to = shared.to, from = shared.from, bytes = shared.bytes;
        u64 alignment = to | from;
        if (alignment % sizeof(Line) == 0) {
            bytes = copy_whole<Line>(&to, &from, bytes);
        }
        if (alignment % sizeof(u64) == 0) { // numbers of 8 and of 4 bytes are never seen in part
            bytes = copy_whole<u64>(&to, &from, bytes);
        }
        if (alignment % sizeof(u32) == 0) {
            bytes = copy_whole<u32>(&to, &from, bytes);
        }
        copy_whole<unsigned char>(&to, &from, bytes);
        number++;
        __syncthreads(); // pairs the other threads' stores with the fence of this one; shared may be written again
        if (threadIdx.x == 0 && (!more || number - told == COPIES_AT_ONCE)) {
            store_release(&mailbox->copied[me], number);
            told = number;
        }
    }
    if (threadIdx.x == 0) {
        workers->taken[me] = number;
        __threadfence(); // pairs with the first block's acquire
        atomicAdd(&workers->ended, 1);
    }
}

/* By one lane. Whether this launch serves the host: it waits for one, no other serves it, and all workers are there.
 * One that comes late leaves at once, and so does one whose workers do not come. */
static __device__ bool is_chosen(millraceCopyMailbox *mailbox, Workers *workers, u32 stream, u32 launch) {
    u32 all = launch * (gridDim.x - 1);
    bool mine = false;
    u64 begin = nanoseconds();
    while (!mine && load_acquire_host(&mailbox->state) == MILLRACE_COPY_ABSENT && nanoseconds() - begin < ARRIVAL_NANOS) {
        if (load_acquire_here(&workers->arrived[stream]) == all && atomicCAS(&workers->owned, 0, 1) == 0) {
            fence(); // pairs with the release by the launch before: what it and its workers counted is there
            mine = load_acquire_host(&mailbox->state) == MILLRACE_COPY_ABSENT; // pairs with the host's release: done is there
            if (!mine) {
                store_release_here(&workers->owned, 0);
            }
        }
    }
    store_release_here(&workers->chosen[stream], launch << 1 | mine);
    return mine;
}

/*
 * The first block carries out commands, in their order, until none has come for linger nanoseconds, or life nanoseconds are over. Then it says that it is
 * leaving, looks once more, and goes: a host that posts a command and then finds that nobody has said so knows that the command will be seen. It begins when all
 * workers are there: what is given to one must not wait for the end of somebody else's kernel. A stream's launches are counted from 1.
 */
extern "C" __global__ void __launch_bounds__(WORKER_THREADS, BLOCKS_BY_REGISTERS)
    copy_commands(millraceCopyMailbox *mailbox, u64 linger, u64 life, Workers *workers, u32 stream, u32 launch) {
    if (blockIdx.x > 0) {
        make_copies(mailbox, workers, blockIdx.x - 1, stream, launch);
        return;
    }
    if (threadIdx.x >= LANES) {
        return;
    }
    u32 lane = threadIdx.x;
    if (!__shfl_sync(ALL, lane == 0 && is_chosen(mailbox, workers, stream, launch), 0)) {
        return;
    }
    u32 number = __shfl_sync(ALL, load_acquire_host(&mailbox->done), 0); // the host has posted nothing since it began to wait
    u64 born = nanoseconds();
    u64 busy = born;
    u32 seen = number; // when the time was busy
    bool leaving = false;
    if (lane == 0) {
        store(&mailbox->state, MILLRACE_COPY_PRESENT | stream << MILLRACE_COPY_STREAM_SHIFT);
    }
    for (u32 looks = 1;; looks++) {
        Look by = look(mailbox, workers, number, lane);
        if (by.found > 0) {
            number += by.found;
            __syncwarp(); // pairs the other lanes' stores with the fence of this one
            if (lane == 0 && by.copied) {
                store_release(&mailbox->done, number);
            } else if (lane == 0) {
                store(&mailbox->done, number); // the places are free: their words were read
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
        store_release_here(&workers->left[stream], launch);
        store_release(&mailbox->state, MILLRACE_COPY_GONE);
        while (load_acquire_here(&workers->ended) != gridDim.x - 1) { // the next launch's workers begin where these end
        }
        workers->ended = 0;
        store_release_here(&workers->owned, 0);
    }
}
