// Behind the address with the token: keeps it for this server alone. Its cookie goes to every server of this machine.

localStorage.setItem("evogit", new URLSearchParams(location.search).get("token"));
location.replace(`/${location.hash}`);
