package org.millrace.ffi;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Headers of a release of NCCL, on an include path.
 *
 * @param name     name of the release for messages
 * @param includes directories that a compiler searches
 */
record NcclSource(String name, List<Path> includes) {

    /** Template of {@code nccl.h} in a checkout. */
    private static final String TEMPLATE = "src/nccl.h.in";
    private static final Pattern VERSION = Pattern.compile("(?m)^NCCL_(MAJOR|MINOR|PATCH|SUFFIX)\\s*:=[ \\t]*(\\S*)");

    /**
     * {@return the headers that the system properties name}: {@code millrace.nccl.headers}, an include path, and
     * {@code millrace.nccl.sources}, checkouts of NCCL's repository, with {@code millrace.cuda.headers}
     *
     * @param directory directory for the headers that a checkout's build would generate
     */
    static List<NcclSource> all(Path directory) throws IOException {
        List<NcclSource> all = new ArrayList<>();
        List<Path> headers = paths("millrace.nccl.headers");
        if (!headers.isEmpty()) {
            all.add(new NcclSource("millrace.nccl.headers", headers));
        }
        for (Path checkout : paths("millrace.nccl.sources")) {
            all.add(checkout(checkout, directory.resolve(checkout.getFileName())));
        }
        return all;
    }

    private static List<Path> paths(String property) {
        return Stream.of(System.getProperty(property, "").split(File.pathSeparator))
                .filter(path -> !path.isBlank())
                .map(Path::of)
                .toList();
    }

    private static NcclSource checkout(Path checkout, Path made) throws IOException {
        String header = Files.readString(checkout.resolve(TEMPLATE));
        int code = 0;
        StringBuilder name = new StringBuilder("NCCL");
        Matcher version = VERSION.matcher(Files.readString(checkout.resolve("makefiles/version.mk")));
        while (version.find()) {
            String part = version.group(1);
            header = header.replace("${nccl:" + part.charAt(0) + part.substring(1).toLowerCase() + "}",
                    version.group(2));
            if (!part.equals("SUFFIX")) {
                code = 100 * code + Integer.parseInt(version.group(2));
                name.append(name.length() == 4 ? ' ' : '.').append(version.group(2));
            }
        }
        Files.createDirectories(made);
        Files.writeString(made.resolve("nccl.h"), header.replace("${nccl:Version}", Integer.toString(code)));
        List<Path> includes = new ArrayList<>(List.of(made, checkout.resolve("src/include"),
                checkout.resolve("src/include/plugin"), checkout.resolve("src")));
        for (Path cuda : paths("millrace.cuda.headers")) {
            includes.addAll(List.of(cuda, cuda.resolve("cccl")));
        }
        return new NcclSource(name.toString(), includes);
    }

    /** Returns the file on the include path; null if no directory of the path has the file. */
    Path find(String header) {
        return includes.stream().map(path -> path.resolve(header)).filter(Files::exists).findFirst().orElse(null);
    }

    @Override
    public String toString() {
        return name;
    }
}
