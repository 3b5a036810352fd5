package org.millrace.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.Charset;

/**
 * A stream of results that knows whether they arrived. {@link PrintWriter} swallows what goes wrong, and a full disk
 * would end with status 0.
 */
public final class StandardOutput extends OutputStream {

    private final OutputStream file;
    /** The first that went wrong; null while nothing has. */
    private volatile IOException failure;

    /** @param file where everything goes, as in {@code new FileOutputStream(FileDescriptor.out)} */
    public StandardOutput(OutputStream file) {
        this.file = file;
    }

    public PrintWriter writer() {
        Charset charset = System.out.charset();
        return new PrintWriter(new OutputStreamWriter(this, charset), true);
    }

    @Override
    public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        try {
            file.write(bytes, offset, length);
        } catch (IOException thrown) {
            failure = failure == null ? thrown : failure;
            throw thrown;
        }
    }

    /**
     * What the user must know of it.
     *
     * @return a sentence, or null: all has arrived, or the reader has left, as {@code head} does, and wants no more
     */
    public String complaint() {
        IOException thrown = failure;
        return thrown == null || "Broken pipe".equals(thrown.getMessage()) ? null
                : "the results could not be written: " + thrown.getMessage();
    }
}
