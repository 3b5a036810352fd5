package org.millrace.library;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibraryDirectoriesTest {

    @TempDir
    Path temporary;

    @Test
    void theEnvironmentsPythonThenTheToolkitNewestFirstThenTheSystem() throws IOException {
        Path root = temporary.toRealPath();
        for (String directory : List.of("venv/lib/python3.11/site-packages/nvidia/nccl/lib",
                "usr/local/cuda-12.9/lib64", "usr/local/cuda-12.10/lib64", "usr/local/cuda-13.0/lib",
                "usr/lib/x86_64-linux-gnu", "usr/local/lib/python3.9/dist-packages/nvidia/nccl/lib",
                "usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib",
                "usr/lib/python3/dist-packages/nvidia/nccl/lib", "home/me/toolkit/lib64",
                "home/me/.local/lib/python3.11/site-packages/nvidia/nccl/lib")) {
            Files.createDirectories(root.resolve(directory));
        }
        Files.createSymbolicLink(root.resolve("usr/local/cuda"), root.resolve("usr/local/cuda-12.10"));
        Files.createSymbolicLink(root.resolve("usr/local/cuda-13.0/lib64"), root.resolve("usr/local/cuda-13.0/lib"));
        Map<String, String> environment = Map.of("VIRTUAL_ENV", root.resolve("venv").toString(), "CUDA_HOME",
                root.resolve("home/me/toolkit").toString(), "HOME", root.resolve("home/me").toString());
        List<String> found = LibraryDirectories.list(root, environment::get, List.of("nvidia/nccl/lib"))
                .stream()
                .map(path -> root.relativize(path).toString())
                .toList();
        assertEquals(List.of("venv/lib/python3.11/site-packages/nvidia/nccl/lib", "venv/lib", "home/me/toolkit/lib64",
                "usr/local/cuda-12.10/lib64", "usr/local/cuda-13.0/lib", "usr/local/cuda-12.9/lib64",
                "usr/lib/x86_64-linux-gnu", "usr/lib", "usr/local/lib",
                "usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib",
                "usr/local/lib/python3.9/dist-packages/nvidia/nccl/lib",
                "usr/lib/python3/dist-packages/nvidia/nccl/lib",
                "home/me/.local/lib/python3.11/site-packages/nvidia/nccl/lib"), found);
    }

    @Test
    void anEmptyMachineHasNone() throws IOException {
        assertEquals(List.of(),
                LibraryDirectories.list(temporary.toRealPath(), name -> null, List.of("nvidia/nccl/lib")));
    }
}
