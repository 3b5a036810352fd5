package org.millrace;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.Completions;
import org.millrace.operation.CopiedSegments;
import org.millrace.operation.HeapAddress;
import org.millrace.operation.OperationGroup;
import org.millrace.operation.Required;
import org.millrace.operation.StagingDevice;
import org.millrace.operation.StagingMemory;
import org.millrace.operation.UserTrace;

/**
 * One operation with {@link Operand} parameters. The call checks the types and counts of its operands against each
 * other. Host operands are copied to device memory before the operation and back after it, on the stream of the
 * operation. The returned {@link CompletionStage} completes after these copies.
 */
final class OperandCall {

    /** Issues the operation on device memory. */
    interface Issue {
        void on(Communicator communicator, @Nullable MemorySegment send, @Nullable MemorySegment receive, long count,
                DataType type);
    }

    private final Communicator communicator;
    private final Operation operation;
    private final DeviceStream stream;
    private final @Nullable Operand send;
    private final @Nullable Operand receive;
    /** Memory of the operands that are used in place; null for an operand that is copied or missing. */
    private @Nullable MemorySegment sent;
    private @Nullable MemorySegment received;
    private StagingMemory.@Nullable Lease sendLease;
    private StagingMemory.@Nullable Lease receiveLease;

    private OperandCall(Communicator communicator, Operation operation, @Nullable Operand send,
            @Nullable Operand receive, DeviceStream stream) {
        this.communicator = communicator;
        this.operation = operation;
        this.send = send;
        this.receive = receive;
        this.stream = stream;
    }

    /**
     * Enqueues a collective. An operand that only the root uses is ignored on other ranks.
     *
     * @param root root of the operation; any number if the operation has no root
     */
    static CompletionStage<Void> collective(TypedOperations caller, Operation operation, @Nullable Operand send,
            @Nullable Operand receive, int root, DeviceStream stream, Issue issue) {
        boolean isRoot = ((Communicator) caller).rank() == root;
        return enqueue(caller, operation,
                isRoot || !operation.isSentByRoot() ? Required.argument(operation.label(), "operand send", send) : null,
                isRoot || !operation.isReceivedByRoot()
                        ? Required.argument(operation.label(), "operand receive", receive)
                        : null,
                stream, issue);
    }

    /**
     * Enqueues an operation.
     *
     * @param send    null if this rank sends nothing
     * @param receive null if this rank receives nothing
     */
    static CompletionStage<Void> enqueue(TypedOperations caller, Operation operation, @Nullable Operand send,
            @Nullable Operand receive, DeviceStream stream, Issue issue) {
        Required.argument(operation.label(), "argument stream", stream);
        try {
            return new OperandCall((Communicator) caller, operation, send, receive, stream).enqueue(issue);
        } catch (RuntimeException refused) {
            throw UserTrace.from(refused);
        }
    }

    private CompletionStage<Void> enqueue(Issue issue) {
        Operand some = Required.argument(operation.label(), "operand values", send == null ? receive : send);
        long count = count();
        check(communicator, operation, "send", send, false);
        check(communicator, operation, "receive", receive, true);
        boolean recorded = OperationGroup.isRecorded();
        CompletableFuture<Void> stage = Completions.newStage();
        try {
            MemorySegment from = memoryToSend(recorded);
            MemorySegment to = memoryToReceive(from, recorded);
            issue.on(communicator, from, to, some.counted(count), some.type());
        } catch (RuntimeException | Error refused) {
            if (sendLease != null || receiveLease != null) {
                // The leased memory is returned after the stream's work, because a copy into the memory may be in
                // flight on the stream.
                stream.completion().thenRun(this::giveBack);
            }
            throw refused;
        }
        if (recorded) {
            stage.completeExceptionally(new IllegalStateException(
                    operation.label() + " was recorded in a plan and runs when that is launched: call "
                            + "DeviceStream.completion() after Plan.launch"));
        } else {
            OperationGroup.afterwards(communicator, failure -> finish(stage, failure));
        }
        return stage;
    }

    private long count() {
        int ranks = communicator.size();
        if (send != null && receive != null && send.type() != receive.type()) {
            throw new IllegalArgumentException(operation.label() + ": send has elements of " + send.type().label()
                    + " and receive of " + receive.type().label() + ": they must be of one type");
        }
        Operand some = send == null ? receive : send;
        if (operation.reduces() && !some.isElementwise()) {
            throw new IllegalArgumentException(operation.label() + ": " + some + " cannot be reduced, as NCCL has no"
                    + " such type, only moved: use int[]");
        }
        long count = send == null ? part("receive", receive.count(), operation.receiveCount(1, ranks))
                : part("send", send.count(), operation.sendCount(1, ranks));
        if (receive != null && receive.count() != operation.receiveCount(count, ranks)) {
            throw new IllegalArgumentException(operation.label() + " of " + ranks + " ranks: send has "
                    + (send == null ? 0 : send.count()) + " elements, so receive must have "
                    + operation.receiveCount(count, ranks) + ", and has " + receive.count());
        }
        return count;
    }

    private long part(String role, long elements, long parts) {
        if (elements % parts != 0) {
            throw new IllegalArgumentException(operation.label() + ": " + role + " has " + elements
                    + " elements, which are not " + parts + " equal parts, one for each rank");
        }
        return elements / parts;
    }

    /**
     * Checks the memory for errors that would otherwise appear on the device's thread, or after a part of the elements
     * was sent.
     */
    static void check(Communicator communicator, Operation operation, String role, @Nullable Operand operand,
            boolean written) {
        if (operand == null) {
            return;
        }
        if (!operand.isOfHost() && !communicator.device().reaches(MemorySegment.NULL, operand.type())) {
            // No Java thread accesses the memory of a GPU. The GPU checks the address when the operation is enqueued.
            return;
        }
        for (MemorySegment memory : operand.memories()) {
            String problem = CopiedSegments.problem(memory, written);
            if (problem != null) {
                throw new IllegalArgumentException("rank " + communicator.rank() + ", " + operation.label() + ", "
                        + role + ": " + operand + " " + problem);
            }
        }
    }

    private @Nullable MemorySegment memoryToSend(boolean recorded) {
        if (send == null) {
            return null;
        }
        if (isUsedInPlace(send, false, recorded)) {
            // An operation in place uses the memory of the receive operand, because the send operand may be a read-only
            // view of that memory.
            sent = addressed(receive != null && receive.isSame(send) ? receive : send);
            return sent;
        }
        sendLease = lease(send.bytes());
        call(send.loading());
        long at = 0;
        for (MemorySegment memory : send.memories()) {
            communicator.device().copyToDevice(memory, part(sendLease, at, memory), stream);
            at += memory.byteSize();
        }
        return sendLease.memory();
    }

    private @Nullable MemorySegment memoryToReceive(@Nullable MemorySegment from, boolean recorded) {
        if (receive == null) {
            return null;
        }
        if (receive.isSame(send)) {
            // The operation is in place, so the memory of the sent elements also receives the result.
            return from;
        }
        if (isUsedInPlace(receive, true, recorded)) {
            received = addressed(receive);
            return received;
        }
        receiveLease = lease(receive.bytes());
        return receiveLease.memory();
    }

    private StagingMemory.Lease lease(long bytes) {
        if (!(communicator.device() instanceof StagingDevice device)) {
            throw new MillraceException(
                    communicator.device().name() + " accepts no host operands: copy them to memory of Device.allocate");
        }
        try {
            return device.staging().take(bytes);
        } catch (IllegalStateException closed) {
            throw new MillraceException("rank " + communicator.rank() + ", " + closed.getMessage(), closed);
        }
    }

    private static MemorySegment part(StagingMemory.Lease lease, long at, MemorySegment memory) {
        return lease.memory().asSlice(at, memory.byteSize());
    }

    private void call(@Nullable Runnable function) {
        if (function != null) {
            stream.call(function);
        }
    }

    private boolean isUsedInPlace(Operand operand, boolean written, boolean recorded) {
        if (!operand.isOfHost()) {
            return true;
        }
        if (operand.isPlain() && communicator.device().reaches(operand.memory(), operand.type())
                && (operand.memory().isNative() || !recorded && isApart(operand, written))) {
            return true;
        }
        if (recorded) {
            throw new IllegalStateException(operation.label() + ": " + operand + " would be copied when the plan is"
                    + " made, and not when it is launched: take memory from Device.allocate");
        }
        return false;
    }

    /**
     * Returns whether the operation can use an operand's memory on the heap in place. Two conditions must hold. The
     * send and receive operands do not overlap, unless they are the same. If another operation of the group also uses
     * the memory, neither operation writes to it. If this method returns false, the operand is copied, so that the
     * order of accesses does not matter.
     */
    private boolean isApart(Operand operand, boolean written) {
        boolean overlaps = send != null && receive != null && !receive.isSame(send)
                && send.memories()
                        .stream()
                        .anyMatch(one -> receive.memories()
                                .stream()
                                .anyMatch(other -> one.asOverlappingSlice(other).isPresent()));
        return !overlaps && OperationGroup.mayUse(operand.memory(), written || operand.isSame(receive));
    }

    /**
     * Returns the memory of an operand that is used in place. For memory on the heap, the returned segment has an
     * address that a kernel's work item can contain.
     */
    private static MemorySegment addressed(Operand operand) {
        return operand.memory().isNative() ? operand.memory() : HeapAddress.of(operand.memory());
    }

    /**
     * Enqueues the copy of the result to the host operand. The stage completes when the operation and this copy are
     * complete. Called when the operation is enqueued, or when its group could not be launched.
     *
     * @param failure reason why the group could not be launched; null if the operation is enqueued
     */
    private void finish(CompletableFuture<Void> stage, @Nullable Throwable failure) {
        if (failure != null) {
            stage.defaultExecutor().execute(() -> stage.completeExceptionally(failure));
            return;
        }
        try {
            if (receive != null && (receiveLease != null || sendLease != null && receive.isSame(send))) {
                StagingMemory.Lease result = receiveLease == null ? sendLease : receiveLease;
                long at = 0;
                for (MemorySegment memory : receive.memories()) {
                    communicator.device().copyToHost(part(result, at, memory), memory, stream);
                    at += memory.byteSize();
                }
                call(receive.storing());
            }
            if (Blocking.leave(() -> end(stage, null))) {
                return;
            }
            stream.completion().whenComplete((_, thrown) -> end(stage, thrown));
        } catch (RuntimeException | Error broken) {
            stage.completeExceptionally(broken);
        }
    }

    private void end(CompletableFuture<Void> stage, @Nullable Throwable thrown) {
        // No kernel of the stream runs any longer, so no kernel looks up this address.
        HeapAddress.release(sent);
        HeapAddress.release(received);
        if (thrown == null) {
            giveBack();
            stage.complete(null);
        } else {
            // The staging memory is not released, because threads may still access it.
            stage.completeExceptionally(thrown);
        }
    }

    private void giveBack() {
        if (sendLease != null) {
            sendLease.close();
        }
        if (receiveLease != null) {
            receiveLease.close();
        }
    }
}
