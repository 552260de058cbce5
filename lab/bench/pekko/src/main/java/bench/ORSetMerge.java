package bench;

import java.util.concurrent.TimeUnit;
import org.apache.pekko.actor.Address;
import org.apache.pekko.cluster.UniqueAddress;
import org.apache.pekko.cluster.ddata.ORSet;
import org.apache.pekko.cluster.ddata.SelfUniqueAddress;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Merges of sets that five nodes filled in turn; BenchmarkPeers_ORSetMerge of package crdt has the same cases. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ORSetMerge {
  static final SelfUniqueAddress[] NODES = new SelfUniqueAddress[5];

  static {
    for (int i = 0; i < NODES.length; i++) {
      Address address = new Address("pekko", "Sys", String.valueOf((char) ('a' + i)).repeat(4), 7355);
      NODES[i] = new SelfUniqueAddress(new UniqueAddress(address, i + 1L));
    }
  }

  @Param({"1", "10", "20", "100", "1000"})
  int size;

  ORSet<String> base;
  ORSet<String> byFirst;
  ORSet<String> bySecond;
  ORSet<String> decoded;
  ORSet<String> left;
  ORSet<String> right;

  @Setup
  public void fill() {
    base = filled();
    byFirst = apart(base.add(NODES[0], "first"));
    bySecond = apart(base.add(NODES[1], "second"));
    decoded = filled().add(NODES[1], "second").merge(filled());
    left = apart(base.add(NODES[1], "a").add(NODES[2], "b").remove(NODES[3], "elem" + size));
    right = apart(base.add(NODES[0], "a").add(NODES[0], "c").add(NODES[1], "d"));
  }

  /** Built apart each time: two of them share nothing, as what was decoded shares nothing. */
  ORSet<String> filled() {
    ORSet<String> set = ORSet.create();
    for (int n = 1; n <= size; n++) {
      set = set.add(NODES[(n - 1) % 5], "elem" + n);
    }
    return set;
  }

  /** Loses the note that the set descends from the base, which would spare the merge. */
  ORSet<String> apart(ORSet<String> set) {
    return set.merge(base);
  }

  @Benchmark
  public ORSet<String> sameNode() {
    return base.merge(base.add(NODES[0], "x").add(NODES[0], "y"));
  }

  @Benchmark
  public ORSet<String> otherNode() {
    return base.merge(bySecond);
  }

  @Benchmark
  public ORSet<String> bothNodes() {
    return byFirst.merge(bySecond);
  }

  @Benchmark
  public ORSet<String> bothDecoded() {
    return byFirst.merge(decoded);
  }

  @Benchmark
  public ORSet<String> complex() {
    return left.merge(right);
  }
}
