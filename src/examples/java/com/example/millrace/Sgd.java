package com.example.millrace;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Data-parallel training of a small model, by stochastic gradient descent. Each rank has a part of the rows. One
 * operation adds up all gradients, and rank 0 writes a checkpoint from time to time. Some ranks are lost during the
 * training, all at once. The other ranks then form a smaller group, divide the rows again, and continue from the
 * checkpoint.
 *
 * <p>
 * {@code Sgd DIRECTORY RANK SIZE [LOST...]} starts one process for each rank. All processes share the directory. Each
 * {@code LOST} is a rank that is lost during the training.
 */
public final class Sgd {

    private static final int FEATURES = 16;
    private static final int ROWS = 4096;
    private static final int STEPS = 200;
    private static final int CHECKPOINT_EVERY = 20;
    private static final int LOST_AT = 70;
    private static final float RATE = 0.5f;

    private final Path directory;
    private final boolean isLost;
    private final float[] weights = new float[FEATURES];
    private final float[] bias = new float[1];
    private int step;

    private Sgd(Path directory, boolean isLost) {
        this.directory = directory;
        this.isLost = isLost;
    }

    public static void main(String[] args) throws IOException {
        train(Path.of(args[0]), Integer.parseInt(args[1]), Integer.parseInt(args[2]),
                List.of(args).subList(3, args.length).contains(args[1]));
    }

    /** Trains as one rank. Continues in a smaller group after each loss. */
    static void train(Path directory, int rank, int size, boolean isLost) throws IOException {
        Sgd model = new Sgd(directory, isLost);
        Communicator communicator = Millrace.builder()
                .rendezvous("file:" + directory.resolve("group"))
                .rank(rank)
                .size(size)
                .onLoss(loss -> System.out.printf("rank %d of %d hears of a loss%n", rank, size))
                .join();
        while (true) {
            try {
                model.run(communicator);
                communicator.close();
                return;
            } catch (CommunicatorException failed) {
                communicator = communicator.shrink(); // fails if the others continue without this rank
                System.out.printf("rank %d goes on as rank %d of %d%n", rank, communicator.rank(), communicator.size());
            } catch (PowerCut cut) {
                communicator.abort(cut);
                System.out.printf("rank %d is lost%n", rank);
                return;
            } catch (IOException | RuntimeException own) {
                communicator.abort(own); // the other ranks learn the reason, and continue
                throw own;
            }
        }
    }

    /** Failure that ends the lost rank. */
    private static final class PowerCut extends RuntimeException {

        private static final long serialVersionUID = 1L;
    }

    private void run(Communicator communicator) throws IOException {
        restore(communicator);
        float[] gradient = new float[FEATURES];
        float[] biasGradient = new float[1];
        // one operation for both gradients
        Operand bucket = Operand.bucket(Operand.of(gradient), Operand.of(biasGradient));
        while (step < STEPS) {
            if (step == LOST_AT && isLost) {
                throw new PowerCut();
            }
            double loss = gradients(communicator, gradient, biasGradient);
            communicator.allReduce(bucket, ReduceOp.SUM);
            for (int i = 0; i < FEATURES; i++) {
                weights[i] -= RATE * gradient[i] / ROWS;
            }
            bias[0] -= RATE * biasGradient[0] / ROWS;
            step++;
            if (step % CHECKPOINT_EVERY == 0) {
                double all = communicator.allReduce(loss, ReduceOp.SUM) / ROWS;
                if (communicator.rank() == 0) {
                    save();
                    System.out.printf("step %d of %d on %s: loss %.2f%n", step, STEPS, communicator.device().name(),
                            all);
                }
            }
        }
        double right = communicator.allReduce(right(communicator), ReduceOp.SUM);
        if (communicator.rank() == 0) {
            System.out.printf("%d ranks have trained: %.0f %% of the rows are told right%n", communicator.size(),
                    100.0 * right / ROWS);
        }
    }

    /** Distributes the checkpoint that rank 0 has read, so that all ranks begin at the same step. */
    private void restore(Communicator communicator) throws IOException {
        int[] at = {0};
        Path file = checkpoint();
        if (communicator.rank() == 0 && Files.exists(file)) {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
            at[0] = bytes.getInt();
            for (int i = 0; i < FEATURES; i++) {
                weights[i] = bytes.getFloat();
            }
            bias[0] = bytes.getFloat();
        }
        communicator.broadcast(Operand.of(at), 0);
        communicator.broadcast(Operand.bucket(Operand.of(weights), Operand.of(bias)), 0);
        step = at[0];
    }

    /** Writes the checkpoint atomically, because the rank may be lost during the write. */
    private void save() {
        ByteBuffer bytes = ByteBuffer.allocate(Integer.BYTES + (FEATURES + 1) * Float.BYTES).putInt(step);
        for (float weight : weights) {
            bytes.putFloat(weight);
        }
        bytes.putFloat(bias[0]);
        try {
            Path written = Files.write(directory.resolve("checkpoint.new"), bytes.array());
            Files.move(written, checkpoint(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Path checkpoint() {
        return directory.resolve("checkpoint");
    }

    /** Computes the sums over this rank's rows. Adds up the gradients and returns the loss. */
    private double gradients(Communicator communicator, float[] gradient, float[] biasGradient) {
        Arrays.fill(gradient, 0);
        biasGradient[0] = 0;
        double loss = 0;
        for (int row = communicator.rank(); row < ROWS; row += communicator.size()) {
            float[] features = features(row);
            double guess = guess(features);
            double error = guess - label(features);
            loss -= Math.log(Math.max(1e-9, label(features) == 1 ? guess : 1 - guess));
            for (int i = 0; i < FEATURES; i++) {
                gradient[i] += (float) (error * features[i]);
            }
            biasGradient[0] += (float) error;
        }
        return loss;
    }

    private long right(Communicator communicator) {
        long right = 0;
        for (int row = communicator.rank(); row < ROWS; row += communicator.size()) {
            float[] features = features(row);
            right += guess(features) > 0.5 == (label(features) == 1) ? 1 : 0;
        }
        return right;
    }

    private double guess(float[] features) {
        double sum = bias[0];
        for (int i = 0; i < FEATURES; i++) {
            sum += weights[i] * features[i];
        }
        return 1 / (1 + Math.exp(-sum));
    }

    /** Returns the data of a row, which is the same on every rank. */
    private static float[] features(int row) {
        Random random = new Random(row);
        float[] features = new float[FEATURES];
        for (int i = 0; i < FEATURES; i++) {
            features[i] = (float) random.nextGaussian();
        }
        return features;
    }

    /** Returns the label that the model must learn. */
    private static int label(float[] features) {
        return features[0] - 2 * features[1] + features[2] * 0.5 > 0.2 ? 1 : 0;
    }
}
