const place = document.getElementById("place");
document.getElementById("prompt").addEventListener("pointerover", (event) => {
  place.textContent = event.target.closest("[data-from]")?.dataset.from ?? "";
});
