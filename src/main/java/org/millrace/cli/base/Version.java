package org.millrace.cli.base;

import picocli.CommandLine.IVersionProvider;

/** Version of Millrace, as stated in the jar's manifest. */
public final class Version implements IVersionProvider {

    /** Returns the version in the jar's manifest, or {@code "(not built into a jar)"}. */
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
