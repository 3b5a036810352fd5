package org.millrace.engine.bootstrap;

/** What a rank may call together with all others. On the wire by its ordinal. */
enum Collective {
    ALL_GATHER("allGather"), BARRIER("barrier");

    final String call;

    Collective(String call) {
        this.call = call;
    }
}
