package dev.kubeskiff.junit;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

import io.fabric8.kubernetes.api.model.Status;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.utils.KubernetesSerialization;

/**
 * Requests to what a control plane has beside the API of Kubernetes, by its administrator. Making one takes much less than a
 * client of fabric8, which has threads of its own.
 */
final class Api {
    private static final int TIMEOUT_MILLIS = 60_000;
    private static final char[] NO_PASSWORD = new char[0];
    private static final KubernetesSerialization JSON = new KubernetesSerialization();

    private final String url;
    private final SSLSocketFactory sockets;

    /**
     * A client of the administrator that a kubeconfig of skiff's is for.
     *
     * @throws IOException if the kubeconfig can't be read, or has no certificates
     */
    Api(String url, Path kubeconfig) throws IOException {
        this.url = url;
        String text = Files.readString(kubeconfig);
        try {
            sockets = context(text).getSocketFactory();
        } catch (GeneralSecurityException error) {
            throw new IOException("the certificates in " + kubeconfig + " can't be used", error);
        }
    }

    /**
     * The JSON that a request with a JSON body is answered with.
     *
     * @param body {@code null} for none
     * @throws KubernetesClientException if that is not a success
     */
    @SuppressWarnings("unchecked")
    Map<String, Object> send(String method, String path, Map<String, Object> body) {
        try {
            HttpsURLConnection request = (HttpsURLConnection) URI.create(url + path).toURL().openConnection();
            request.setSSLSocketFactory(sockets);
            request.setRequestMethod(method);
            request.setConnectTimeout(TIMEOUT_MILLIS);
            request.setReadTimeout(TIMEOUT_MILLIS);
            if (body != null) {
                request.setRequestProperty("Content-Type", "application/json");
                request.setDoOutput(true);
                try (OutputStream out = request.getOutputStream()) {
                    out.write(JSON.asJson(body).getBytes(StandardCharsets.UTF_8));
                }
            }
            int code = request.getResponseCode();
            try (InputStream answer = answer(request, code)) {
                String said = new String(answer.readAllBytes(), StandardCharsets.UTF_8);
                if (code < 400) {
                    return JSON.unmarshal(said, Map.class);
                }
                Status status = JSON.unmarshal(said, Status.class);
                String message = status == null ? method + " " + path : status.getMessage();
                throw new KubernetesClientException(message, code, status);
            }
        } catch (IOException error) {
            throw new KubernetesClientException(method + " " + path, error);
        }
    }

    private static InputStream answer(HttpsURLConnection request, int code) throws IOException {
        if (code < 400) {
            return request.getInputStream();
        }
        InputStream refusal = request.getErrorStream();
        return refusal == null ? InputStream.nullInputStream() : refusal;
    }

    private static SSLContext context(String kubeconfig) throws GeneralSecurityException, IOException {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", certificate(part(kubeconfig, "certificate-authority-data")));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyStore own = KeyStore.getInstance(KeyStore.getDefaultType());
        own.load(null, null);
        Certificate[] chain = {certificate(part(kubeconfig, "client-certificate-data"))};
        own.setKeyEntry("administrator", key(part(kubeconfig, "client-key-data")), NO_PASSWORD, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(own, NO_PASSWORD);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static Certificate certificate(byte[] pem) throws GeneralSecurityException {
        return CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(pem));
    }

    private static PrivateKey key(byte[] pem) throws GeneralSecurityException {
        String text = new String(pem, StandardCharsets.US_ASCII).replaceAll("-----[A-Z ]+-----", "");
        byte[] encoded = Base64.getMimeDecoder().decode(text);
        return KeyFactory.getInstance(ControlPlane.KEY_ALGORITHM).generatePrivate(new PKCS8EncodedKeySpec(encoded));
    }

    /** What stands in a kubeconfig in base64, of which there is one. */
    private static byte[] part(String kubeconfig, String name) throws IOException {
        Matcher found = Pattern.compile("^\\s*" + name + ": (\\S+)$", Pattern.MULTILINE).matcher(kubeconfig);
        if (!found.find()) {
            throw new IOException("the kubeconfig has no " + name);
        }
        return Base64.getDecoder().decode(found.group(1));
    }
}
