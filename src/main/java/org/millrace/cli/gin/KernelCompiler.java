package org.millrace.cli.gin;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;

/**
 * Compiles the kernels with nvcc and the headers of the installed NCCL. The kernels are compiled on the user's machine,
 * because the structures that they share with NCCL depend on NCCL's release.
 */
final class KernelCompiler {

    private static final String SOURCE = "gin.cu";
    private static final long LIMIT_SECONDS = 180;
    private static final int SHOWN_LINES = 20;
    /** First version of NCCL with device functions for GIN. */
    private static final int FIRST_WITH_GIN = 22807;

    private KernelCompiler() {}

    /**
     * Checks that kernels for a release of NCCL can use GIN. For an older release the compiler would write many
     * messages.
     *
     * @param version version code of the release
     * @param text    the version as text
     * @param library path of the loaded libnccl
     */
    static void requireGin(int version, String text, Path library) {
        if (version < FIRST_WITH_GIN) {
            throw new MillraceException("NCCL " + text + " (" + library
                    + ") has no GIN: name the libnccl.so.2 of 2.28.7 or later in MILLRACE_NCCL_LIBRARY");
        }
    }

    /**
     * Compiles the kernels.
     *
     * @param directory destination of the image and of its sources
     * @param device    GPU that will run the kernels
     * @param nvcc      compiler; null to search for one
     * @param include   directory of nccl_device.h; null to search for it
     * @param library   path of the loaded libnccl; the headers may lie in a directory beside the library's directory
     * @return the image
     */
    static Path compile(Path directory, CudaDevice device, @Nullable Path nvcc, @Nullable Path include, Path library) {
        Path compiler = nvcc != null ? nvcc : findCompiler();
        Path headers = include != null ? include : findHeaders(library);
        if (!Files.exists(headers.resolve("nccl_device.h"))) {
            throw new MillraceException("there is no nccl_device.h in " + headers
                    + ": NCCL has it since 2.28; name its directory with --nccl-include");
        }
        Path image = directory.resolve("gin.cubin");
        String architecture = "sm_" + device.computeCapability().replace(".", "");
        // GDAKI, NCCL's own backend for network cards, is left out, because it includes DOCA's headers, which are
        // rarely installed.
        run(directory, List.of(compiler.toString(), "-cubin", "-O2", "-std=c++17", "-arch=" + architecture,
                "-DNCCL_GIN_GDAKI_ENABLE=0", "-I" + headers, unpack(directory).toString(), "-o", image.toString()));
        return image;
    }

    private static Path findCompiler() {
        List<Path> places = new ArrayList<>();
        for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
            String home = System.getenv(variable);
            if (home != null && !home.isBlank()) {
                places.add(Path.of(home, "bin"));
            }
        }
        for (String directory : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
            places.add(Path.of(directory));
        }
        places.add(Path.of("/usr/local/cuda/bin"));
        return places.stream()
                .map(place -> place.resolve("nvcc"))
                .filter(Files::isExecutable)
                .findFirst()
                .orElseThrow(() -> new MillraceException("the kernels have to be compiled, and there is no nvcc"
                        + " in CUDA_HOME, on the PATH or in /usr/local/cuda/bin. Install CUDA's compiler (package "
                        + "cuda-nvcc), name it with --nvcc,"
                        + " or give kernels that were compiled elsewhere with --cubin"));
    }

    private static Path findHeaders(Path library) {
        List<Path> places = new ArrayList<>();
        String home = System.getenv("NCCL_HOME");
        if (home != null && !home.isBlank()) {
            places.add(Path.of(home, "include"));
        }
        if (library.getParent() != null) {
            // Python's packages of NCCL have the headers in this directory.
            places.add(library.getParent().resolve("../include").normalize());
        }
        places.add(Path.of("/usr/include"));
        places.add(Path.of("/usr/local/include"));
        return places.stream()
                .filter(place -> Files.exists(place.resolve("nccl_device.h")))
                .findFirst()
                .orElseThrow(() -> new MillraceException(
                        "the kernels have to be compiled, and none of " + places + " has NCCL's nccl_device.h."
                                + " Name the directory where it lies with --nccl-include or its parent in NCCL_HOME,"
                                + " or give kernels that were compiled elsewhere with --cubin"));
    }

    private static Path unpack(Path directory) {
        Path source = directory.resolve(SOURCE);
        try (InputStream text = KernelCompiler.class.getResourceAsStream(SOURCE)) {
            if (text == null) {
                throw new MillraceException("the jar of Millrace lacks " + SOURCE
                        + ": build it anew, with src/main/cuda among its resources");
            }
            Files.copy(text, source);
            return source;
        } catch (IOException failure) {
            throw new MillraceException("cannot write " + source + ": " + failure.getMessage(), failure);
        }
    }

    private static void run(Path directory, List<String> command) {
        Path log = directory.resolve("nvcc.log");
        Process process = null;
        try {
            process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                throw new MillraceException(
                        String.join(" ", command) + " is still running after " + LIMIT_SECONDS + " s");
            }
            if (process.exitValue() != 0) {
                String output = Files.readString(log).lines().limit(SHOWN_LINES).collect(Collectors.joining("\n"));
                throw new MillraceException(
                        String.join(" ", command) + " ended with exit status " + process.exitValue() + ":\n" + output);
            }
        } catch (IOException failure) {
            throw new MillraceException("cannot run " + command.getFirst() + ": " + failure.getMessage()
                    + "; name another nvcc with --nvcc", failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new MillraceException("interrupted while the kernels were compiled", interrupted);
        } finally {
            if (process != null) {
                process.destroyForcibly();
            }
        }
    }
}
