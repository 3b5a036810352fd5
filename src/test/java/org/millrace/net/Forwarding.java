package org.millrace.net;

/** Connection ends that forward every call, for tests that change one method. */
public final class Forwarding {

    private Forwarding() {}

    /** Forwards to a sender. */
    public static class Sender implements FrameSender {
        protected final FrameSender inner;

        public Sender(FrameSender inner) {
            this.inner = inner;
        }

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            return inner.offer(header, region, offset);
        }

        @Override
        public int progress() {
            return inner.progress();
        }

        @Override
        public long framesCompleted() {
            return inner.framesCompleted();
        }

        @Override
        public void close() {
            inner.close();
        }

        @Override
        public void abort() {
            inner.abort();
        }
    }

    /** Forwards to a receiver. */
    public static class Receiver implements FrameReceiver {
        protected final FrameReceiver inner;

        public Receiver(FrameReceiver inner) {
            this.inner = inner;
        }

        @Override
        public FrameHeader poll() {
            return inner.poll();
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            inner.accept(region, offset);
        }

        @Override
        public int progress() {
            return inner.progress();
        }

        @Override
        public long framesCompleted() {
            return inner.framesCompleted();
        }

        @Override
        public void close() {
            inner.close();
        }
    }
}
