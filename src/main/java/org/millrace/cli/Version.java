package org.millrace.cli;

import picocli.CommandLine.IVersionProvider;

/** Says which version this is: the jar's manifest knows. */
final class Version implements IVersionProvider {

    /** The version of Millrace: what the jar says, or {@code "(not built into a jar)"}. */
    public static String millrace() {
        String version = Version.class.getPackage().getImplementationVersion();
        return version == null ? "(not built into a jar)" : version;
    }

    @Override
    public String[] getVersion() {
        return new String[] {"millrace " + millrace(),
                "Java " + Runtime.version() + ", " + System.getProperty("java.vendor")};
    }
}
