package org.millrace;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A thread was interrupted while it waited, or before it began an operation. The interrupt status of the thread stays
 * set. The communicator stays usable, unless the message states that it was aborted.
 */
public final class OperationInterruptedException extends CommunicatorException {

    private static final long serialVersionUID = 1L;

    private final transient @Nullable Supplier<CompletionStage<Void>> completion;

    /**
     * Creates an exception.
     *
     * @param message    the interrupted wait, and its consequence
     * @param rank       the rank that throws this exception
     * @param operation  the operation in progress; null without an operation
     * @param completion function that returns a stage for the work that continues; null if no work continues
     */
    public OperationInterruptedException(String message, int rank, @Nullable String operation,
            @Nullable Supplier<CompletionStage<Void>> completion) {
        super(message, rank, NO_RANK, operation, null);
        this.completion = completion;
    }

    /**
     * {@return a stage for the work that the interrupted thread waited for} If the work continues, it uses its operands
     * until the stage is complete. If no work continues, the stage is complete already.
     */
    public CompletionStage<Void> completion() {
        return completion == null ? CompletableFuture.completedFuture(null) : completion.get();
    }
}
