package kubeapitest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubeapitest.KubeAPIServer;
import io.fabric8.kubeapitest.KubeAPIServerConfigBuilder;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ServiceAccountBuilder;
import io.fabric8.kubernetes.api.model.authentication.SelfSubjectReviewBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * Fabric8's kube-api-test, which finds its programs by {@code KUBE_API_TEST_DIR} and is told no more of them.
 */
class StandInTest {
  private static final String NAMESPACE = "default";

  @Test
  void aControlPlaneStartsServesAndStops() throws Exception {
    var server = start();
    try (var client = connect(server)) {
      assertEquals("34", client.getKubernetesVersion().getMinor());
      assertNotNull(client.namespaces().withName(NAMESPACE).get());
      var seen = new CompletableFuture<String>();
      var watch = client.configMaps().inNamespace(NAMESPACE).watch(told(seen));
      var made = client.configMaps().inNamespace(NAMESPACE).resource(map("ark")).create();
      assertNotNull(made.getMetadata().getUid());
      assertEquals("ark", seen.get(1, TimeUnit.MINUTES));
      watch.close();
      var ark = client.configMaps().inNamespace(NAMESPACE).withName("ark");
      ark.edit(map -> new ConfigMapBuilder(map).addToData("crew", "8").build());
      assertEquals("8", ark.get().getData().get("crew"));
    } finally {
      server.stop();
    }
    assertEquals(0, ProcessHandle.current().children().filter(ProcessHandle::isAlive).count(), "processes are left");
  }

  /** Its key file is a private key in RSA, with which tokens are signed and believed. */
  @Test
  void accountsHaveTokens() {
    var server = start();
    try (var client = connect(server)) {
      var account = new ServiceAccountBuilder().withNewMetadata().withName("robot").endMetadata().build();
      client.serviceAccounts().inNamespace(NAMESPACE).resource(account).create();
      var token = client.serviceAccounts().inNamespace(NAMESPACE).withName("robot").tokenRequest().getStatus().getToken();
      var admin = client.getConfiguration();
      var config = new ConfigBuilder(Config.empty())
          .withMasterUrl(admin.getMasterUrl())
          .withCaCertFile(admin.getCaCertFile())
          .withOauthToken(token)
          .build();
      try (var robot = new KubernetesClientBuilder().withConfig(config).build()) {
        var review = new SelfSubjectReviewBuilder().build();
        var user = robot.resource(review).create().getStatus().getUserInfo().getUsername();
        assertEquals("system:serviceaccount:default:robot", user);
      }
    } finally {
      server.stop();
    }
  }

  /** Several stand side by side, and know nothing of each other. */
  @Test
  void controlPlanesAreApart() {
    var one = start();
    var other = start();
    try (var client = connect(one); var beside = connect(other)) {
      client.configMaps().inNamespace(NAMESPACE).resource(map("ark")).create();
      assertNull(beside.configMaps().inNamespace(NAMESPACE).withName("ark").get());
      assertTrue(beside.configMaps().inNamespace(NAMESPACE).list().getItems().isEmpty());
    } finally {
      one.stop();
      other.stop();
    }
  }

  private static KubeAPIServer start() {
    // The kubeconfig of whoever runs this is left alone.
    var config = KubeAPIServerConfigBuilder.anAPIServerConfig().withOfflineMode(true).withUpdateKubeConfig(false).build();
    var server = new KubeAPIServer(config);
    server.start();
    return server;
  }

  private static KubernetesClient connect(KubeAPIServer server) {
    return new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(server.getKubeConfigYaml())).build();
  }

  private static ConfigMap map(String name) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).endMetadata().withData(Map.of("crew", "1")).build();
  }

  private static Watcher<ConfigMap> told(CompletableFuture<String> name) {
    return new Watcher<>() {
      @Override
      public void eventReceived(Action action, ConfigMap map) {
        name.complete(map.getMetadata().getName());
      }

      @Override
      public void onClose(WatcherException cause) {
        name.completeExceptionally(cause);
      }
    };
  }
}
