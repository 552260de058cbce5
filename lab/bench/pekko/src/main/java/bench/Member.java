package bench;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.StreamSupport;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.ExtendedActorSystem;
import org.apache.pekko.actor.PoisonPill;
import org.apache.pekko.actor.Props;
import org.apache.pekko.cluster.Cluster;
import org.apache.pekko.cluster.MemberStatus;
import org.apache.pekko.cluster.ddata.DistributedData;
import org.apache.pekko.cluster.ddata.Key;
import org.apache.pekko.cluster.ddata.LWWRegister;
import org.apache.pekko.cluster.ddata.LWWRegisterKey;
import org.apache.pekko.cluster.ddata.ORSet;
import org.apache.pekko.cluster.ddata.ORSetKey;
import org.apache.pekko.cluster.ddata.PNCounter;
import org.apache.pekko.cluster.ddata.PNCounterKey;
import org.apache.pekko.cluster.ddata.ReplicatedData;
import org.apache.pekko.cluster.ddata.Replicator;
import org.apache.pekko.cluster.ddata.SelfUniqueAddress;
import org.apache.pekko.cluster.singleton.ClusterSingletonManager;
import org.apache.pekko.cluster.singleton.ClusterSingletonManagerSettings;
import org.apache.pekko.pattern.Patterns;

/**
 * One process of a cluster of Pekko with Distributed Data. It reads the same commands as the members
 * of lab/bench/peers, from its standard input, and prints the same answers. Arguments: the number of
 * this member, and the ports of all. Pekko's settings are its defaults. With two more, "singleton"
 * and stable-after of the split brain resolver in seconds or 0 for its default, it runs a singleton,
 * which prints its start, and nothing else; with "sharding" and the same, it hosts entities: see
 * Shards.
 */
public final class Member {
  static final int MEMBERS = 3;
  static final int DIGITS = 10;
  static final Duration LIMIT = Duration.ofSeconds(30);
  static final Replicator.WriteConsistency LOCAL = Replicator.writeLocal();
  static final Replicator.WriteConsistency MAJORITY = new Replicator.WriteMajority(LIMIT);
  static final Replicator.WriteConsistency ALL = new Replicator.WriteAll(LIMIT);

  final ActorSystem system;
  final ActorRef replicator;
  final SelfUniqueAddress self;
  final Map<String, AtomicLong> groups = new HashMap<>();

  Member(ActorSystem system) {
    this.system = system;
    this.replicator = DistributedData.get(system).replicator();
    this.self = DistributedData.get(system).selfUniqueAddress();
  }

  public static void main(String[] args) throws Exception {
    String seeds = String.join(",", Arrays.stream(args).skip(1).limit(MEMBERS).map(p -> "\"pekko://peers@127.0.0.1:" + p + "\"").toList());
    Config config =
        ConfigFactory.parseString(
                "pekko.actor.provider = cluster\n"
                    + "pekko.remote.artery.canonical.hostname = \"127.0.0.1\"\n"
                    + "pekko.remote.artery.canonical.port = "
                    + args[1 + Integer.parseInt(args[0])]
                    + "\npekko.cluster.seed-nodes = ["
                    + seeds
                    + "]\npekko.loglevel = WARNING\npekko.log-dead-letters = off\n"
                    + "pekko.cluster.sharding.passivation.strategy = none\n"
                    + (args.length > 1 + MEMBERS ? resolver(args[2 + MEMBERS]) : ""))
            .withFallback(ConfigFactory.load());
    LinkedBlockingQueue<String> commands = new LinkedBlockingQueue<>();
    Thread reader =
        new Thread(
            () -> {
              try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = in.readLine(); line != null; line = in.readLine()) {
                  commands.add(line);
                }
              } catch (Exception e) {
                e.printStackTrace();
              }
              Runtime.getRuntime().halt(0); // also in the middle of a command
            });
    reader.start();
    ActorSystem system = ActorSystem.create("peers", config);
    awaitMembers(system);
    if (args.length > 1 + MEMBERS && args[1 + MEMBERS].equals("sharding")) {
      new Shards(system, Integer.parseInt(args[0]), Arrays.copyOfRange(args, 1, 1 + MEMBERS)).obey(commands);
      return;
    }
    System.out.println("@ ready");
    if (args.length > 1 + MEMBERS) {
      system.actorOf(
          ClusterSingletonManager.props(
              Props.create(Host.class), PoisonPill.getInstance(), ClusterSingletonManagerSettings.create(system)),
          "singleton");
      return;
    }
    Member member = new Member(system);
    while (true) {
      String answer;
      try {
        answer = member.obey(commands.take());
      } catch (Exception e) {
        answer = "failed " + e.toString().replace('\n', ';');
      }
      System.out.println("@ " + answer);
    }
  }

  static String resolver(String seconds) {
    return "pekko.cluster.downing-provider-class = \"org.apache.pekko.cluster.sbr.SplitBrainResolverProvider\"\n"
        + (seconds.equals("0") ? "" : "pekko.cluster.split-brain-resolver.stable-after = " + seconds + "s\n");
  }

  /** The singleton. */
  static final class Host extends AbstractActor {
    @Override
    public void preStart() {
      System.out.println("@ hosts at=" + unixNanos());
    }

    @Override
    public Receive createReceive() {
      return receiveBuilder().build();
    }
  }

  static void awaitMembers(ActorSystem system) throws InterruptedException {
    Cluster cluster = Cluster.get(system);
    while (StreamSupport.stream(cluster.state().getMembers().spliterator(), false)
            .filter(m -> m.status().equals(MemberStatus.up()))
            .count()
        < MEMBERS) {
      Thread.sleep(50);
    }
  }

  String obey(String line) throws Exception {
    if (line.equals("heap")) {
      return heap();
    }
    Map<String, String> words = words(line);
    Work work = new Work(words);
    switch (line.substring(0, line.indexOf(' '))) {
      case "run":
        return run(work, Long.parseLong(words.get("n")), Long.parseLong(words.get("ms")));
      case "await":
        return await(work, Long.parseLong(words.get("total")));
      default:
        throw new IllegalArgumentException("no such command: " + line);
    }
  }

  static String heap() {
    System.gc();
    System.gc();
    return "heap bytes=" + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  /** The values of a command by name. */
  static Map<String, String> words(String line) {
    Map<String, String> words = new HashMap<>();
    for (String part : line.split(" ")) {
      int i = part.indexOf('=');
      if (i > 0) {
        words.put(part.substring(0, i), part.substring(i + 1));
      }
    }
    return words;
  }

  /** One workload, as in lab/bench/peers. */
  static final class Work {
    final String op;
    final String kind;
    final int elems;
    final int keys;
    final int size;
    final int callers;

    Work(Map<String, String> words) {
      op = words.get("op");
      kind = words.get("kind");
      elems = Integer.parseInt(words.get("elems"));
      keys = Integer.parseInt(words.get("keys"));
      size = Integer.parseInt(words.get("size"));
      callers = Integer.parseInt(words.get("callers"));
    }

    String group() {
      return kind + "-" + elems + "-" + keys + "-" + size;
    }

    String key(int i) {
      return String.format("%s-%04d", group(), i);
    }
  }

  /** The requests of one workload. */
  interface Requests {
    Object get(long i);

    Object update(long i);

    /** A last update, for a set; null if the value is enough. */
    Object mark(int key, long total);

    boolean has(Object value, long want, long total);
  }

  Requests open(Work w) {
    Replicator.WriteConsistency level =
        switch (w.op) {
          case "majority" -> MAJORITY;
          case "all" -> ALL;
          default -> LOCAL;
        };
    switch (w.kind) {
      case "counter":
        {
          Key<PNCounter>[] keys = keysOf(w, PNCounterKey::create);
          return new Requests() {
            public Object get(long i) {
              return new Replicator.Get<>(keys[(int) (i % w.keys)], Replicator.readLocal());
            }

            public Object update(long i) {
              return new Replicator.Update<>(
                  keys[(int) (i % w.keys)], PNCounter.create(), level, c -> c.increment(self, 1L));
            }

            public Object mark(int key, long total) {
              return null;
            }

            public boolean has(Object value, long want, long total) {
              return ((PNCounter) value).getValue().longValueExact() >= want;
            }
          };
        }
      case "register":
        {
          Key<LWWRegister<String>>[] keys = keysOf(w, LWWRegisterKey::create);
          LWWRegister<String> first = LWWRegister.create(self, numbered(0, w.size));
          return new Requests() {
            public Object get(long i) {
              return new Replicator.Get<>(keys[(int) (i % w.keys)], Replicator.readLocal());
            }

            public Object update(long i) {
              return new Replicator.Update<>(
                  keys[(int) (i % w.keys)],
                  first,
                  level,
                  r -> r.withValue(self, numbered(numberOf(r.getValue()) + 1, w.size)));
            }

            public Object mark(int key, long total) {
              return null;
            }

            public boolean has(Object value, long want, long total) {
              return numberOf((String) ((LWWRegister<?>) value).getValue()) >= want;
            }
          };
        }
      case "set":
        {
          Key<ORSet<String>>[] keys = keysOf(w, ORSetKey::create);
          String[] elements = new String[w.elems];
          for (int i = 0; i < elements.length; i++) {
            elements[i] = numbered(i, w.size);
          }
          return new Requests() {
            public Object get(long i) {
              return new Replicator.Get<>(keys[(int) (i % w.keys)], Replicator.readLocal());
            }

            public Object update(long i) {
              String element = elements[(int) (i / w.keys % w.elems)];
              return new Replicator.Update<>(
                  keys[(int) (i % w.keys)], ORSet.create(), level, s -> s.add(self, element));
            }

            public Object mark(int key, long total) {
              return new Replicator.Update<>(
                  keys[key], ORSet.create(), LOCAL, s -> s.add(self, markOf(total)));
            }

            @SuppressWarnings("unchecked")
            public boolean has(Object value, long want, long total) {
              return ((ORSet<String>) value).contains(markOf(total));
            }
          };
        }
      default:
        throw new IllegalArgumentException("no such kind: " + w.kind);
    }
  }

  interface NewKey<T extends ReplicatedData> {
    Key<T> of(String name);
  }

  @SuppressWarnings("unchecked")
  static <T extends ReplicatedData> Key<T>[] keysOf(Work w, NewKey<T> make) {
    Key<T>[] keys = new Key[w.keys];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = make.of(w.key(i));
    }
    return keys;
  }

  static String numbered(long n, int size) {
    StringBuilder b = new StringBuilder(size);
    String number = Long.toString(n);
    for (int i = number.length(); i < DIGITS; i++) {
      b.append('0');
    }
    b.append(number);
    while (b.length() < size) {
      b.append(FILLER, 0, Math.min(FILLER.length(), size - b.length()));
    }
    return b.toString();
  }

  static final String FILLER = "x".repeat(1000);

  /** From so many keys on nothing waits until the other members have the updates. */
  static final int MANY_KEYS = 100_000;

  static long numberOf(String text) {
    return Long.parseLong(text, 0, DIGITS, 10);
  }

  static String markOf(long total) {
    return "mark-" + total;
  }

  static long unixNanos() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1_000_000_000L + now.getNano();
  }

  Object ask(Object message) throws Exception {
    return Patterns.ask(replicator, message, LIMIT).toCompletableFuture().get();
  }

  String await(Work w, long total) throws Exception {
    Requests r = open(w);
    long deadline = System.nanoTime() + LIMIT.toNanos();
    for (int key = 0; key < w.keys; key++) {
      long want = total / w.keys + (key < total % w.keys ? 1 : 0);
      while (true) {
        Object answer = ask(r.get(key));
        if (answer instanceof Replicator.GetSuccess<?> got && r.has(got.dataValue(), want, total)) {
          break;
        }
        if (System.nanoTime() > deadline) {
          throw new IllegalStateException("key " + w.key(key) + " is not equal after " + LIMIT);
        }
        Thread.sleep(2);
      }
    }
    return "there at=" + unixNanos();
  }

  String run(Work w, long n, long ms) throws Exception {
    boolean writes = !w.op.equals("get");
    AtomicLong counted = groups.computeIfAbsent(w.group(), g -> new AtomicLong());
    Requests r = open(w);
    Load load = new Load(writes ? counted : new AtomicLong(), n, w.callers);
    long start = unixNanos();
    long begin = System.nanoTime();
    if (w.callers == 0) {
      // Answers cost least if they are sent to this reference.
      ActorRef nobody = ((ExtendedActorSystem) system).provider().ignoreRef();
      long first = load.next.getAndAdd(n);
      for (long i = 0; i < n; i++) {
        replicator.tell(r.update(first + i), nobody);
      }
      load.done.set(n);
      ask(r.get(0)); // answered after all updates
    } else {
      for (int i = 0; i < w.callers; i++) {
        system.actorOf(Props.create(Caller.class, () -> new Caller(load, replicator, r, writes)));
      }
      if (n == 0) {
        load.ended.await(ms, TimeUnit.MILLISECONDS);
        load.stop = true;
      }
      if (!load.ended.await(6 * LIMIT.toSeconds(), TimeUnit.SECONDS)) {
        throw new IllegalStateException("callers have not ended after " + LIMIT.multipliedBy(6));
      }
    }
    long took = System.nanoTime() - begin;
    long total = counted.get();
    if (writes && w.keys < MANY_KEYS) {
      for (int key = 0; key < w.keys; key++) {
        Object mark = r.mark(key, total);
        if (mark != null) {
          ask(mark);
        }
      }
    }
    if (load.failed != null) {
      throw new IllegalStateException(load.failed);
    }
    return "done n=" + load.done + " ns=" + took + " start=" + start + " total=" + total + " p50=" + load.median();
  }

  /** A run of one workload. */
  static final class Load {
    final AtomicLong next;
    final long n;
    final long first;
    final CountDownLatch ended;
    final AtomicLong done = new AtomicLong();
    volatile boolean stop;
    volatile String failed;
    final long[] took; // of each request, with one caller
    int measured;

    Load(AtomicLong next, long n, int callers) {
      this.next = next;
      this.n = n;
      this.first = next.get();
      this.ended = new CountDownLatch(callers);
      this.took = callers == 1 ? new long[1 << 20] : null;
    }

    /** Returns the number of the next request, or -1 if there is none. */
    long take() {
      if (stop && next.get() > first) {
        return -1;
      }
      long i = next.getAndIncrement();
      if (n > 0 && i >= first + n) {
        next.decrementAndGet();
        return -1;
      }
      return i;
    }

    long median() {
      if (measured == 0) {
        return 0;
      }
      Arrays.sort(took, 0, measured);
      return took[measured / 2];
    }
  }

  /** Sends requests to the replicator, each one after the previous answer. */
  static final class Caller extends AbstractActor {
    final Load load;
    final ActorRef replicator;
    final Requests requests;
    final boolean writes;
    long done;
    long sent;

    Caller(Load load, ActorRef replicator, Requests requests, boolean writes) {
      this.load = load;
      this.replicator = replicator;
      this.requests = requests;
      this.writes = writes;
    }

    @Override
    public void preStart() {
      send();
    }

    @Override
    public Receive createReceive() {
      return receiveBuilder()
          .match(Replicator.UpdateSuccess.class, m -> answered())
          .match(Replicator.GetSuccess.class, m -> answered())
          .matchAny(
              m -> {
                load.failed = m.toString();
                load.stop = true;
                answered();
              })
          .build();
    }

    void answered() {
      done++;
      if (load.took != null && load.measured < load.took.length) {
        load.took[load.measured++] = System.nanoTime() - sent;
      }
      send();
    }

    void send() {
      long i = load.take();
      if (i < 0) {
        load.done.addAndGet(done);
        load.ended.countDown();
        getContext().stop(getSelf());
        return;
      }
      if (load.took != null) {
        sent = System.nanoTime();
      }
      replicator.tell(writes ? requests.update(i) : requests.get(i), getSelf());
    }
  }
}
