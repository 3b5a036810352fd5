package org.millrace.device.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinDescriptorFormat;
import org.millrace.abi.GinOp;
import org.millrace.gin.GinException;
import org.millrace.gin.window.Window;

/** Writes the descriptors of one block. A signal in a window needs a descriptor of its own, behind that of its put. */
final class GinWriter {

    private final GinDescriptorFormat format;
    final long[] words = new long[GinDescriptorFormat.MAX_WORDS];
    private final long[] signalWords = new long[GinDescriptorFormat.MAX_WORDS];

    GinWriter(GinDescriptorFormat format) {
        this.format = format;
    }

    /** Fills in {@link #words}; returns the second descriptor, if it takes two. */
    long @Nullable [] put(Window target, long targetOffset, Window source, long sourceOffset, long bytes,
            RemoteAction action, int counter) {
        beginPut(counter >= 0 ? GinOp.COUNTER : 0, bytes, action);
        format.source(words, source.handle(), sourceOffset);
        format.target(words, target.handle(), targetOffset);
        format.completion(words, Math.max(counter, 0), action.signal(), action.value());
        return windowSignal(action);
    }

    long @Nullable [] putValue(Window target, long targetOffset, long value, int bytes, RemoteAction action) {
        beginPut(GinOp.INLINE, bytes, action);
        format.inline(words, value);
        format.target(words, target.handle(), targetOffset);
        format.completion(words, 0, action.signal(), action.value());
        return windowSignal(action);
    }

    private void beginPut(int op, long bytes, RemoteAction action) {
        format.begin(words, GinOp.PUT | op | (action.isInWindow() ? 0 : action.op()), bytes);
    }

    private long @Nullable [] windowSignal(RemoteAction action) {
        if (!action.isInWindow()) {
            return null;
        }
        if (format == GinDescriptorFormat.V28) {
            throw new GinException("NCCL 2.28 has no signals in windows: require format V29 or later");
        }
        format.begin(signalWords, action.op(), 0);
        format.source(signalWords, action.window().handle(), action.offset());
        format.completion(signalWords, 0, 0, action.value());
        return signalWords;
    }

    /** Returns the only descriptor. */
    long[] signal(RemoteAction action) {
        long @Nullable [] inWindow = windowSignal(action);
        if (inWindow == null) {
            beginPut(0, 0, action);
            format.completion(words, 0, action.signal(), action.value());
        }
        return inWindow == null ? words : inWindow;
    }

    /** Fills in {@link #words}. */
    void get(Window source, long sourceOffset, Window target, long targetOffset, long bytes) {
        if (!format.hasGets()) {
            throw new GinException("NCCL 2.28 and 2.29 have no get: require format V30_3 or V30");
        }
        format.begin(words, GinOp.GET, bytes);
        format.source(words, source.handle(), sourceOffset);
        format.target(words, target.handle(), targetOffset);
    }
}
